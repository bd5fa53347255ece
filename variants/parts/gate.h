/* SPDX-License-Identifier: MIT
 *
 * What forward and backward of the gates share: the order of their parameters, and the layout of
 * the work space that forward leaves. */
#pragma once

#include "parts.h"

enum { WG, BG };                                                 /* input, output, highway */
enum { ST_WG, ST_UG, ST_BG };                                    /* sigtanh: [W_g; U_g] */
enum { GRU_WR, GRU_WZ, GRU_WG, GRU_UR, GRU_UZ, GRU_UG, GRU_BG }; /* [W_r; W_z; W_g] [U_r; U_z] */

/* Work space of gru: the pre-activations of r, z and the candidate, columns of one [rows,3D], then
 * r (.) x [rows,D]. The other gates store only their pre-activations: [rows,D], sigtanh
 * [rows,2D]. */
struct gru_work {
    float *r, *z, *cand, *rx;
};
static inline struct gru_work gru_work(const struct config *c, float *work, int rows)
{
    return (struct gru_work){work, work + c->D, work + 2 * (ptrdiff_t)c->D,
                             work + 3 * (ptrdiff_t)rows * c->D};
}

#define GATE_BACKWARD(name)                                                                        \
    void gate_##name##_backward(const struct engine *g, const struct config *c,                    \
                                const struct param *w, float *d_x, float *d_y, const float *d_out, \
                                const float *x, const float *y, int rows, float *work,             \
                                float *grad_work)
GATE_BACKWARD(residual);
GATE_BACKWARD(input);
GATE_BACKWARD(output);
GATE_BACKWARD(highway);
GATE_BACKWARD(sigtanh);
GATE_BACKWARD(gru);

/* SPDX-License-Identifier: MIT
 *
 * What the forward and backward halves of the gates share: the order of their parameters, and how
 * forward leaves its work space (each slot [rows,D]). */
#ifndef GATE_H
#define GATE_H

#include "parts.h"

enum { WG, BG };                                                 /* input, output, highway */
enum { ST_WG, ST_UG, ST_BG };                                    /* sigtanh */
enum { GRU_WR, GRU_UR, GRU_WZ, GRU_UZ, GRU_WG, GRU_UG, GRU_BG }; /* gru */

/* Pre-activations, but for the first of gru, which holds r (.) x. */
enum { SLOT_A, SLOT_C };
enum { SLOT_RX, SLOT_Z, SLOT_CAND };

/* dst [rows,D] = beta * dst + src W^T */
void gate_project(const struct engine *g, const struct config *c, const struct param *w, float *dst,
                  const float *src, int rows, float beta);

#define GATE_BACKWARD(name)                                                                        \
    void gate_##name##_backward(const struct engine *g, const struct config *c,                    \
                                const struct param *w, float *d_x, float *d_y, const float *d_out, \
                                const float *x, const float *y, int rows, float *work,             \
                                float *more)
GATE_BACKWARD(residual);
GATE_BACKWARD(input);
GATE_BACKWARD(output);
GATE_BACKWARD(highway);
GATE_BACKWARD(sigtanh);
GATE_BACKWARD(gru);

#endif

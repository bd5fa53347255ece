/* SPDX-License-Identifier: MIT
 *
 * Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon): Nesterov momentum of the
 * gradient G of a matrix, made nearly orthogonal by five Newton-Schulz steps:
 *
 *   m <- b m + (1-b) G                      b = 0.95
 *   U  = b m + (1-b) G
 *   X  = U / (|U| + 1e-7)                   Frobenius
 *   X <- a X + (c1 A + c2 A^2) X            5 times, with A = X X^T
 *   W <- W (1 - lr decay) - lr s X
 *
 * (a, c1, c2) = (3.4445, -4.7750, 2.0315) moves singular values to about 1.
 * For each map of a tensor alone; a matrix that is higher than wide is transposed meanwhile. In
 * mixed precision (engine_train_in) the three products of a step round their operands to bf16, as
 * Jordan's program does; sums, m and W stay f32. */
#pragma once

#include "variants/parts/params.h"

/* s of a map [out,in]: ADAMW 0.2 sqrt(max(out, in)), with which steps are as large as AdamW's and
 * take its rate (Liu et al. 2025, arXiv:2502.16982, equation 4); SHAPE sqrt(max(1, out / in)),
 * which is Jordan's and wants a rate of its own. */
enum muon_scale { MUON_ADAMW, MUON_SHAPE };
extern const char *const muon_scale_name[]; /* "adamw" "shape" NULL */

struct muon {
    float *x, *y; /* [r,c] of the largest map, r <= c */
    float *a, *b; /* [r,r] */
};

/* Does it step this parameter? Else AdamW does. */
bool muon_steps(const struct param *p);

/* Work space (PART_SCRATCH) for all of them. */
void muon_bind(struct muon *u, const struct params *p, struct arena *a);

/* One update of `p` from its gradient times `scale`; m [p->n] is its momentum. */
void muon_update(const struct muon *u, const struct param *p, float *m, const struct engine *g,
                 enum muon_scale by, double lr, double decay, double scale);

/* `square` plus the squares of x [n], in double, in a fixed number of blocks that does not depend
 * on threads. */
double square_added(double square, const float *x, ptrdiff_t n, int threads);

/* SPDX-License-Identifier: MIT
 *
 * What forward and backward of a sub-layer's wiring share. */
#pragma once

#include "sublayer.h"

/* Does a row of its output depend on other rows? */
bool sublayer_mixes(const struct sublayer *s);

/* [m; x] before the norm, after sublayer_source has joined them. */
struct sublayer_input sublayer_entered(const struct sublayer *s, const float *x, int B, int L);

/* What f read, of a forward that was kept. */
static inline const float *sublayer_reads(const struct work *w)
{
    return w->reads ? w->reads : w->x;
}

/* Is f added unchanged to x? Otherwise it is multiplied by sublayer_factor first, ReZero's alpha or
 * a half, or x by omega. */
bool sublayer_adds_plainly(const struct sublayer *s);
float sublayer_factor(const struct sublayer *s);

/* Steps of the convolutions, sublayer_conv.c. */
void conv_cpe(struct steps *t);
void conv_sep(struct steps *t);
void conv_branches(struct steps *t);
/* Rows before a row that its branches depend on. */
int conv_branches_reach(void);

/* ---- pool groups, sublayer_pool.c --------------------------------------------------------- */

/* Pool groups of 2^level tokens among L; in the causal form only whole ones count. */
static inline int pool_groups(const struct config *c, int L, int level)
{
    return (L + (c->causal ? 0 : (1 << level) - 1)) >> level;
}
/* Rows of a sequence of L tokens before and after a sub-layer. */
static inline int rows_before(const struct sublayer *s, int L)
{
    return pool_groups(s->c, L, s->level - s->pools);
}
static inline int rows_after(const struct sublayer *s, int L)
{
    return pool_groups(s->c, L, s->level);
}

/* The means of two rows [B,groups,D] of x [B,L,D], in w: its query rows and residual input. Backward:
 * d from [B,L/2,D] to [B,L,D], the gradient of x without the part through f, which is added. */
float *pool_rows(const struct sublayer *s, struct work *w, const float *x, int B, int L);
void pool_rows_grad(const struct sublayer *s, const struct work *w, float *d, int B, int L);

struct sublayers;
/* Before the i-th sub-layer runs on x, which has room for [B,L,D]: give each token its row again if
 * it joins, and save the rows for that where pooling begins. */
void pool_enter(const struct sublayers *s, int i, float *x, int B, int L);
/* Its backward, after that of the sub-layer. */
void pool_enter_grad(const struct sublayers *s, int i, float *d, int B, int L);

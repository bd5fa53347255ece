/* SPDX-License-Identifier: MIT
 *
 * What forward and backward of the funnel share. */
#ifndef FUNNEL_INNER_H
#define FUNNEL_INNER_H

#include "funnel_net.h"
#include "variants/parts/dropout.h"
#include "variants/parts/linear.h"
#include "variants/parts/norm.h"

/* A layer's parameters, in the order in which they are added. */
enum {
    FUNNEL_Q,
    FUNNEL_K,
    FUNNEL_K_BIAS,
    FUNNEL_V,
    FUNNEL_V_BIAS,
    FUNNEL_O,
    FUNNEL_O_BIAS,
    FUNNEL_R,
    FUNNEL_U,
    FUNNEL_W,
    FUNNEL_LN1,
    FUNNEL_LN2 = FUNNEL_LN1 + 2,
    FUNNEL_FFN = FUNNEL_LN2 + 2
};

/* Are this layer's queries means of two rows each? */
static inline bool funnel_pools(const struct funnel_layer *l) { return l->sq != l->sk; }

/* The pool group of `step` tokens that token t reads from the top; -1 = none is complete yet. */
static inline int funnel_group(const struct funnel *f, int t, int step)
{
    return f->c.causal ? (t + 1) / step - 1 : t / step;
}

/* Layers before the decoder's; the last of block 0; tokens per pool group at the top. */
static inline int funnel_encoder(const struct funnel *f) { return f->n - f->dec_layers; }
static inline int funnel_first(const struct funnel *f) { return f->layers[0] - 1; }
static inline int funnel_step(const struct funnel *f) { return f->at[funnel_encoder(f) - 1].sq; }

#endif

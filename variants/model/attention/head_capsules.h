/* SPDX-License-Identifier: MIT
 *
 * How heads agree on their output: the votes V of head_capsules.c, and for each position the parts
 * n of its output, capsules. One position is one call; forward leaves what backward reads. */
#pragma once

#include "variants/variant.h"

struct vote {
    int H, N, D, width; /* heads, capsules, channels, and those of a capsule */
    int iters;
    float lambda, eps;            /* of em */
    const float *beta_a, *beta_u; /* [N] of em */
    const float *votes;           /* [H,D] */
    float *shares;                /* [iters,H,N] */
    float *sums;                  /* [agreement.sums] */
};

struct agreement {
    int (*sums)(int D, int N);      /* floats of one iteration */
    int (*sums_grad)(int D, int N); /* floats of sums of backward, beside y [D] */
    double flop;                    /* for each vote's channel and iteration */
    /* y [D] of one position; room is [H,N] floats. */
    void (*forward)(const struct vote *p, float *y, float *room);
    /* d_V [H,D] from d_y [D], which is overwritten; sums_grad floats behind it and room [H,N] are
     * work space. Of the former the last 2N are the gradients of beta_a and beta_u, if it has
     * them. */
    void (*backward)(const struct vote *p, float *d_V, float *d_y, float *sums, float *room);
};

extern const struct agreement agreement_dynamic, agreement_em;

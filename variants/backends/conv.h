/* SPDX-License-Identifier: MIT
 *
 * Short causal convolution of each channel alone, as before recurrences (Gu and Dao 2023, "Mamba",
 * arXiv:2312.00752):
 *
 *   y_t = bias + sum_s w_s (.) x_{t-taps+1+s}          s = 0 .. taps - 1 */
#pragma once

#include "attn.h"

struct conv {
    int B, L, n, taps;
    const float *x; /* [B,L,n] */
    struct stride x_at;
    int front;           /* rows of x before the first of each sequence, which count as given */
    const float *before; /* [B,taps-1,n] in their place; NULL = zeros */
    const float *w;      /* [taps,n] */
    const float *bias;   /* [n]; NULL = none */
};

/* All are added to, and not wanted where NULL but for d_x and d_w. */
struct conv_grad {
    const float *d_y; /* [B,L,n] */
    struct stride d_y_at, d_x_at;
    int front; /* rows of d_x before the first of each sequence */
    float *d_x, *d_before, *d_w, *d_bias;
};

/* Row t of sequence b, t < 0 being one of the rows before; NULL = zeros. */
static inline const float *conv_row(const struct conv *c, int b, int t)
{
    if (t >= -c->front)
        return c->x + b * c->x_at.batch + t * c->x_at.row;
    return c->before ? c->before + ((ptrdiff_t)b * (c->taps - 1) + c->taps - 1 + t) * c->n : NULL;
}

/* The gradient of that row; NULL = it has none. */
static inline float *conv_grad_row(const struct conv *c, const struct conv_grad *d, int b, int t)
{
    if (t >= -d->front)
        return d->d_x + b * d->d_x_at.batch + t * d->d_x_at.row;
    return d->d_before ? d->d_before + ((ptrdiff_t)b * (c->taps - 1) + c->taps - 1 + t) * c->n
                       : NULL;
}

/* y [B,L,n] has strides y_at. */
void conv_forward(const struct conv *c, float *y, struct stride y_at, int threads);
void conv_backward(const struct conv *c, const struct conv_grad *d, int threads);
/* The last taps - 1 rows of each sequence, those before it included, which may be c->before. */
void conv_after(const struct conv *c, float *after);
/* Weights [n,taps], as models have them, become [taps,n], so that channels lie side by side. */
void conv_by_taps(float *by_tap, const float *w, int n, int taps);

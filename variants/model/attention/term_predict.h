/* SPDX-License-Identifier: MIT
 *
 * The convolution of predicted scores: equation in term_predict.c. */
#pragma once

#include "variants/parts/params.h"

/* Arrays [B,H,L,K] of one call, and the convolution between them. */
struct field {
    int B, H, L, K;
    int rows, cols, up;
    const float *W, *b; /* [H,H,rows,cols] [H] */
    int threads;
};

/* y = conv(x), and d_x += conv^T(d_y). */
void convolve(const struct field *f, float *y, const float *x);
void convolve_back(const struct field *f, float *d_x, const float *d_y);
/* Gradients of W and b, p[0] and p[1], given that of conv(x): each number by one thread. */
void convolve_weights(const struct field *f, const struct param *p, const float *d_y,
                      const float *x);

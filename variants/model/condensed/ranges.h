/* SPDX-License-Identifier: MIT
 *
 * Attention of queries that see a range of rows in each of several lists, in a plain threaded loop.
 */
#pragma once

#include "variants/backends/backend.h"

enum { RANGE_LISTS = 32 };

/* Keys or values: row j of list l of sequence b is at
 * list[l] + b * stride[l] + (first[l] + j * step[l]) * Hkv * dh; a step of 0 is 1. */
struct range_rows {
    float *list[RANGE_LISTS];
    ptrdiff_t stride[RANGE_LISTS];
    int first[RANGE_LISTS], step[RANGE_LISTS];
    int rows[RANGE_LISTS], lists;
};

struct ranges {
    int B, L, H, Hkv, dh;
    float scale;
    const float *q;         /* [B,L,H,dh] */
    struct range_rows k, v; /* alike */
    float *o;               /* [B,L,H,dh]; 0 for a query that sees nothing */
    float *lse;             /* [B,H,L] or NULL */
    /* The range of each list that query i sees; returns the number of lists. */
    int (*seen)(const void *of, int i, struct range out[RANGE_LISTS]);
    const void *context;
    int most; /* no query sees more rows */
};

/* d_q is overwritten, gradients of rows are added to. */
struct ranges_grad {
    const float *d_o;
    float *d_q;
    struct range_rows k, v;
};

/* Work space for queries that see up to `most` rows. */
struct attn_need ranges_need(int most, int threads);
void ranges_forward(const struct engine *g, const struct ranges *a, void *scratch);
/* The result does not depend on the number of threads. */
void ranges_backward(const struct engine *g, const struct ranges *a, const struct ranges_grad *d,
                     void *scratch);
/* Visible pairs of all heads and sequences. */
double ranges_pairs(const struct ranges *a);

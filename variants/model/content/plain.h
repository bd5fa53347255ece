/* SPDX-License-Identifier: MIT
 *
 * Attention of one query to a list of keys in plain C, for what the ordinary kernels cannot: keys
 * that occur twice, and several softmaxes of which one result is made. */
#pragma once

#include "content.h"

/* Query i of a head, `n` keys, what is added to their scores (NULL = nothing), room for their
 * probabilities. */
struct plain_row {
    const struct attn *a;
    int b, h, i;
    const int32_t *keys;
    const double *add;
    int n;
    double *p;
};

/* Fill p, which sums to 1 or is empty. The logarithm of the sum before; -INFINITY without keys. */
double plain_probs(const struct plain_row *r);

/* o += by sum_j p_j v_j */
void plain_output(const struct plain_row *r, double by, float *o);

/* From the gradient by * d_o of that output, and that of the logarithm, d_lse: adds to d_q, d_k and
 * d_v. */
void plain_grad(const struct plain_row *r, double by, const float *d_o, double d_lse,
                const struct attn_grad *d);

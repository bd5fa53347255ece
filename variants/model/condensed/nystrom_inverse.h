/* SPDX-License-Identifier: MIT
 *
 * Nystrom attention of one head between landmarks: A_2 and the iteration for its pseudo-inverse Z,
 * forward and backward (variants/nystrom.c). */
#pragma once

#include "variants/backends/backend.h"

enum { NYSTROM_TEMPORARY = 8 }; /* matrices behind the iterates */

/* One head of one sequence. Landmarks are rows of the model's width. */
struct nystrom_head {
    const struct engine *g;
    int m, dh, iterations;
    ptrdiff_t row;
    float scale, ridge;
    const float *q, *k, *o; /* Q~, K~, A_3 v */
    float *to;              /* Z A_3 v */
    float *a, *z;           /* A_2 + ridge I; iterates, then temporary matrices */
};

/* A_2, all iterates and `to`. */
void nystrom_invert(const struct nystrom_head *n);
/* From the gradient of Z A_3 v to those of A_3 v, of K~, which is added to, and of Q~, which takes
 * its place. d has the gradients' places; temporary matrices of n are overwritten. */
void nystrom_invert_grad(const struct nystrom_head *n, const struct nystrom_head *d);

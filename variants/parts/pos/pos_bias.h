/* SPDX-License-Identifier: MIT
 *
 * Shared by schemes that add a number per head and distance to the scores: a table [H,R] in `struct
 * attn`, its gradient, and its indexing by distance. */
#ifndef POS_BIAS_H
#define POS_BIAS_H

#include "variants/variant.h"

/* Take a table for distances 0..R-1, the last entry serving all beyond, and point `a` at it. */
size_t bias_floats(const struct config *c, int R); /* of such a table */
void bias_reserve(const struct config *c, int R, struct arena *arena, struct attn *a);

/* Head h's entry for distance 0; that for distance n < a->R is n entries before it,
 * that for the future distance -n <= a->Rf n entries behind it. */
float *bias_of(const struct attn *a, int h);

/* Zero the table's gradient, which has the shape of the bias, and point `d` at it. */
void bias_grad_clear(const struct attn *a, float *tables, struct attn_grad *d);

/* As bias_of, for the gradient. */
const float *bias_grad_of(const struct attn *a, const struct attn_grad *d, int h);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Shared by schemes that add a number per head and distance to the scores: a table [H,R] in `struct
 * attn`, its gradient, and its indexing by distance. */
#pragma once

#include "variants/variant.h"

/* Take a table for distances 0..R-1, the last entry serving all beyond, and point `a` at it.
 * bias_reserve is the hook `reserve` of schemes with an entry for each of the K distances. */
size_t bias_floats(const struct config *c, int R); /* of such a table */
void bias_reserve_rows(const struct pos_call *t, int R);
void bias_reserve(const struct pos_call *t);

/* Head h's entry for distance 0; that for distance n < a->R is n entries before it,
 * that for the future distance -n <= a->Rf n entries behind it. */
float *bias_of(const struct attn *a, int h);

/* The hook `terms_grad`: zero the table's gradient, which has the shape of the bias. */
void bias_terms_grad(const struct pos_call *t);

/* As bias_of, for the gradient. */
const float *bias_grad_of(const struct attn *a, const struct attn_grad *d, int h);

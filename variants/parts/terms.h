/* SPDX-License-Identifier: MIT
 *
 * All that a model adds to attention besides queries, keys and values: the position scheme, the
 * second scheme (config.attn_extra) and masks. */
#pragma once

#include "variants/variant.h"

/* The first parameter of each. */
struct term_params {
    const struct param *model, *pos, *attn_extra;
};

/* The hooks of struct pos for both schemes of this layer; with `p` NULL only masks and windows.
 * Sized for L queries and K keys, even if `a` has fewer. */
void terms_reserve(const struct config *c, const struct term_params *p, int layer, int L, int K,
                   struct arena *arena, struct attn *a);
/* With a->bf16, tables and sinks are rounded at the end. */
void terms_build_tables(const struct engine *g, const struct config *c, const struct term_params *p,
                        const float *pos_encoding, struct attn *a);
size_t terms_n_tables_grad(const struct config *c, int K);
void terms_grad(const struct config *c, const struct term_params *p, int K, struct attn *a,
                float *tables, struct attn_grad *d);
void terms_build_tables_grad(const struct engine *g, const struct config *c,
                             const struct term_params *p, const float *pos_encoding, struct attn *a,
                             struct attn_grad *d);

/* SPDX-License-Identifier: MIT
 *
 * All that a model puts into its attentions beside queries, keys and values, in one place: the
 * position scheme, the further scheme (config.more) and masks. */
#ifndef TERMS_H
#define TERMS_H

#include "variants/variant.h"

/* The first parameters of each. */
struct term_params {
    const struct param *model, *pos, *attn_extra;
};

/* As the hooks of struct pos, for all of them; up to L queries and K keys, however few `a` has. */
void terms_reserve(const struct config *c, const struct term_params *p, int L, int K,
                   struct arena *arena, struct attn *a);
void terms_build_tables(const struct engine *g, const struct config *c, const struct term_params *p,
                        const float *pos_encoding, struct attn *a);
size_t terms_n_tables_grad(const struct config *c, int K);
void terms_grad(const struct config *c, const struct term_params *p, int K, const struct attn *a,
                float *tables, struct attn_grad *d);
void terms_build_tables_grad(const struct engine *g, const struct config *c,
                             const struct term_params *p, const float *pos_encoding,
                             const struct attn *a, const struct attn_grad *d);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Latent attention as a kind of sub-layer: its arrays and weights, for its two directions. */
#ifndef SUBLAYER_LATENT_H
#define SUBLAYER_LATENT_H

#include "sublayer_attention.h"
#include "variants/parts/latent.h"

/* Parameters in the order they are added. Where queries are not compressed, W_q stands for W_qb and
 * the two before it are missing. */
enum latent_param { MLA_Q_A, MLA_Q_NORM, MLA_Q_B, MLA_KV_A, MLA_KV_NORM, MLA_KV_B, MLA_O };

/* Arrays; K are memory and new rows, W = kv_rank + d_rope:
 *   of queries   [B,L,q_rank] before and after their norm, [B,L,H,dh]
 *   of latents   [B,K,kv_rank] before their norm, [B,K,W] as remembered (with MEM_KV in the cache)
 *   expanded     [B,K,H,d_nope+dv] W_kvb c, keys [B,K,H,dh], values [B,K,H,dv]
 *   absorbed     queries [B,L,H,W] and outputs [B,L,H,kv_rank] as the core has them
 *   outputs      [B,L,H,dv], and for backward log-sum-exp [B,H,L]
 * Those of gradients have the same shapes, except that absorbed values have rows of latents. */
enum {
    LA_Q_RAW,
    LA_Q_LOW,
    LA_Q,
    LA_RAW,
    LA_LATENT,
    LA_UP,
    LA_K,
    LA_V,
    LA_WIDE_Q,
    LA_WIDE_O,
    LA_O,
    LA_LSE
};

/* Rows of B sequences: `batch` floats between sequences, `row` between rows. */
struct latent_rows {
    float *at;
    ptrdiff_t batch, row;
};

static inline bool latent_absorbs(const struct config *c) { return c->mla == MLA_ABSORBED; }
/* W_uk and W_uv of one head: [d_nope,kv_rank] and [dv,kv_rank] in W_kvb. */
static inline int latent_head(const struct config *c) { return latent_of(c)->nope + config_dv(c); }

const struct param *latent_param(const struct sublayer *s, enum latent_param which);
/* Rotate the last d_rope coordinates of `heads` heads of so many floats, the first row at
 * `position`. */
void latent_rotate(const struct engine *g, const struct sublayer *s, struct seq_rows x, int B,
                   int rows, int heads, int width, int64_t position, bool back);
/* The core's operands, as the last forward left them. */
struct attn latent_operands(const struct sublayer *s, const struct work *w, int B, int L);

/* Backward, sublayer_latent_grad.c. */
void latent_backward(const struct engine *g, struct sublayer *s, const struct work *w,
                     struct sublayer_input from, float *d_in, const float *d_y, int skip);
double latent_grad_flop(const struct sublayer *s, int B, int L, int M);
/* FLOP of the products outside the core of `rows` new rows, `projected` rows of latents that are
 * computed and `all` that are attended to. */
double latent_maps_flop(const struct sublayer *s, double rows, double projected, double all);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Normed queries and keys (Henry et al. 2020, arXiv:2010.04245; Qwen3 2025, arXiv:2505.09388),
 * before they are rotated, h a head:
 *
 *   q <- rms(q_h) (.) w_q
 *   k <- rms(k_h) (.) w_k */
#include "around.h"

#include <string.h>

enum { Q_WEIGHT, K_WEIGHT };
enum { RAW_Q, RAW_K, STATS }; /* projections before the norm [B,L,H,dh] [B,K,Hkv,dh]; of backward */

static void declare(const struct sublayer *s, const char *prefix, struct params *p)
{
    params_vector(p, INIT_ONE, 0, s->c->dh, prefix, "attn.q_norm.weight");
    params_vector(p, INIT_ONE, 0, s->c->dh, prefix, "attn.k_norm.weight");
}

static void arrays(const struct sublayer *s, struct around_call n, bool backward,
                   size_t floats[AROUND_ARRAYS])
{
    const size_t rows = (size_t)n.B * (size_t)n.L, kv_rows = (size_t)n.B * (size_t)n.K;
    const size_t heads = (size_t)config_maps(s->c) * (size_t)s->c->H;

    if (backward) {
        floats[STATS] = kv_rows * heads * NORM_STATS;
        return;
    }
    floats[RAW_Q] = rows * (size_t)config_q_width(s->c);
    floats[RAW_K] = kv_rows * (size_t)config_kv_width(s->c);
}

/* x [B,rows,heads,dh] <- its norm, leaving x in `raw`. */
static void norm_heads(const struct part_call *t, const struct param *weight, struct seq_rows x,
                       float *raw, int rows, int heads)
{
    const int dh = t->s->c->dh;
    const size_t n = (size_t)rows * (size_t)heads * (size_t)dh;

    CHECK(raw);
    for (int b = 0; b < t->n.B; b++) {
        float *const at = x.at + b * x.stride, *const from = raw + (size_t)b * n;
        memcpy(from, at, n * sizeof(float));
        t->g->ops.norm(&(struct norm){.kind = NORM_RMS,
                                      .y = at,
                                      .x = from,
                                      .weight = weight->data,
                                      .rows = rows * heads,
                                      .n = dh,
                                      .eps = t->s->c->head_eps,
                                      .threads = t->g->threads});
    }
}

static void queries(const struct part_call *t, struct seq_rows q)
{
    norm_heads(t, &t->param[Q_WEIGHT], q, t->at[RAW_Q], t->n.L, config_maps(t->s->c) * t->s->c->H);
}

static void keys(const struct part_call *t, struct seq_rows k)
{
    norm_heads(t, &t->param[K_WEIGHT], k, t->at[RAW_K], t->n.K,
               config_maps(t->s->c) * t->s->c->kv_heads);
}

static void operands_grad(const struct part_call *t, struct attn_grad *d)
{
    const int maps = config_maps(t->s->c), B = t->n.B;

    around_norm_grad(t, &t->param[Q_WEIGHT], d->d_q, t->at[RAW_Q], t->d_at[STATS],
                     B * t->n.L * maps * t->s->c->H);
    around_norm_grad(t, &t->param[K_WEIGHT], d->d_k, t->at[RAW_K], t->d_at[STATS],
                     B * t->n.K * maps * t->s->c->kv_heads);
}

const struct around_part head_qk_norm = {
    .said = "qk_norm",
    .numbers = AROUND_SWITCH("qk_norm", NULL, .absent = "0"),
    .params = declare,
    .arrays = arrays,
    .map = {.queries = queries, .keys = keys, .operands_grad = operands_grad},
};

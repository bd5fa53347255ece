/* SPDX-License-Identifier: MIT
 *
 * Normed queries and keys (Henry et al. 2020, arXiv:2010.04245; Qwen3 2025, arXiv:2505.09388),
 * before they are rotated, h a head:
 *
 *   q <- rms(q_h) (.) w_q
 *   k <- rms(k_h) (.) w_k
 *
 * or all heads of a row together (OLMo 2, arXiv:2501.00656). */
#include "around.h"

enum { Q_WEIGHT, K_WEIGHT };
enum { RAW_Q, RAW_K, STATS }; /* projections before the norm [B,L,H,dh] [B,K,Hkv,dh]; of backward */

enum over { OVER_HEAD, OVER_ROW };
static const char *const over_name[] = {[OVER_HEAD] = "head", [OVER_ROW] = "row", NULL};

struct qk_norm {
    struct around_switch here;
    int over;
};

static bool is_on(const struct config *c) { return around_has(c, SLOT_head_qk_norm); }

static const struct choice choices[] = {
    ROW_FLAG(struct qk_norm, here.on, "qk_norm", NULL, .absent = "0"),
    ROW_WORD(struct qk_norm, over, "qk_norm_over", over_name,
             "what queries and keys are normed over", .absent = "head", .applies = is_on, SETTING),
    {0},
};
static const struct part_numbers numbers = {choices, PRESET(struct qk_norm, .here = {true})};

/* Rows of so many heads are so many vectors. */
struct vectors {
    int n, width;
};
static struct vectors vectors_of(const struct config *c, int rows, int heads)
{
    const struct qk_norm *const q = config_numbers(c, SLOT_head_qk_norm);

    return q->over == OVER_ROW ? (struct vectors){rows, heads * c->dh}
                               : (struct vectors){rows * heads, c->dh};
}

static int q_heads(const struct config *c) { return config_maps(c) * c->H; }
static int k_heads(const struct config *c) { return config_maps(c) * c->kv_heads; }

static void declare(const struct sublayer *s, const char *prefix, struct params *p)
{
    const struct config *const c = s->c;

    params_vector(p, INIT_ONE, 0, vectors_of(c, 1, q_heads(c)).width, prefix, "attn.q_norm.weight");
    params_vector(p, INIT_ONE, 0, vectors_of(c, 1, k_heads(c)).width, prefix, "attn.k_norm.weight");
}

static void arrays(const struct sublayer *s, struct around_call n, size_t floats[AROUND_ARRAYS])
{
    const size_t rows = (size_t)n.B * (size_t)n.L, kv_rows = (size_t)n.B * (size_t)n.K;
    const size_t heads = (size_t)config_maps(s->c) * (size_t)s->c->H;

    if (n.backward) {
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
    const struct vectors v = vectors_of(t->s->c, rows, heads);
    const size_t n = (size_t)v.n * (size_t)v.width;

    CHECK(raw);
    for (int b = 0; b < t->n.B; b++) {
        float *const at = x.at + b * x.stride, *const from = raw + (size_t)b * n;
        memcpy(from, at, n * sizeof(float));
        t->g->ops.norm(&(struct norm){.kind = NORM_RMS,
                                      .y = at,
                                      .x = from,
                                      .weight = weight->data,
                                      .rows = v.n,
                                      .n = v.width,
                                      .eps = t->s->c->head_eps,
                                      .threads = t->g->threads});
    }
}

static void queries(const struct part_call *t, struct seq_rows q)
{
    norm_heads(t, &t->param[Q_WEIGHT], q, t->at[RAW_Q], t->n.L, q_heads(t->s->c));
}

static void keys(const struct part_call *t, struct seq_rows k)
{
    norm_heads(t, &t->param[K_WEIGHT], k, t->at[RAW_K], t->n.K, k_heads(t->s->c));
}

static void operands_grad(const struct part_call *t, struct attn_grad *d)
{
    const struct config *const c = t->s->c;

    around_norm_grad(t, &t->param[Q_WEIGHT], d->d_q, t->at[RAW_Q], t->d_at[STATS],
                     vectors_of(c, t->n.B * t->n.L, q_heads(c)).n);
    around_norm_grad(t, &t->param[K_WEIGHT], d->d_k, t->at[RAW_K], t->d_at[STATS],
                     vectors_of(c, t->n.B * t->n.K, k_heads(c)).n);
}

const struct around_part head_qk_norm = {
    .said = "qk_norm",
    .numbers = &numbers,
    .params = declare,
    .arrays = arrays,
    .map = {.queries = queries, .keys = keys, .operands_grad = operands_grad},
};

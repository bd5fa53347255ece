/* SPDX-License-Identifier: MIT
 *
 * Differences of two softmaxes (Ye et al. 2024, "Differential Transformer", arXiv:2410.05258), P_1
 * and P_2 those of 2h and 2h+1 of 2H heads of queries and keys:
 *
 *   l_0 = 0.8 - 0.6 e^(-0.3 layer)
 *   l   = e^(l_q1.l_k1) - e^(l_q2.l_k2) + l_0
 *   o   = (1 - l_0) rms((P_1 - l P_2) v)
 *
 * Keys are remembered as the core reads them: [2, heads, dh]. */
#include "around.h"

enum { LAMBDA_Q1, LAMBDA_K1, LAMBDA_Q2, LAMBDA_K2, NORM };
/* [B,L,H,2 dh] of each softmax, and their difference; [B,K] rows of queries or keys; of backward:
 * values of the second, of norms. */
enum { O_1, O_2, MIXED, SPARE, D_V, STATS };

struct diff {
    bool on;           /* config_maps() reads it */
    float lambda_init; /* l_0; 0 = by the layer */
};
_Static_assert(offsetof(struct diff, on) == 0, "config_maps() reads it there");

static bool subtracts(const struct config *c)
{
    return ((const struct diff *)config_numbers(c, SLOT_head_diff))->on;
}

static const struct choice choices[] = {
    ROW_FLAG(struct diff, on, "diff", NULL, .absent = "0"),
    ROW_REAL(struct diff, lambda_init, "lambda_init", 0, 1,
             "first weight of the second map; 0: by the layer", .absent = "0", .applies = subtracts,
             SETTING),
    {0},
};

static const struct part_numbers numbers = {choices, PRESET(struct diff, .on = true)};

static void declare(const struct sublayer *s, const char *prefix, struct params *p)
{
    static const char *const names[] = {"attn.lambda_q1", "attn.lambda_k1", "attn.lambda_q2",
                                        "attn.lambda_k2"};
    const struct config *const c = s->c;

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        params_vector(p, INIT_NORMAL, 0.1f, c->dh, prefix, names[i]);
    params_vector(p, INIT_ONE, 0, config_maps(c) * c->dh, prefix, "attn.norm.weight");
}

static void arrays(const struct sublayer *s, struct around_call n, size_t floats[AROUND_ARRAYS])
{
    const size_t HD = (size_t)config_q_width(s->c),
                 heads = (size_t)config_maps(s->c) * (size_t)s->c->H;
    const size_t rows = (size_t)n.B * (size_t)n.L, kv_rows = (size_t)n.B * (size_t)n.K;

    floats[O_2] = rows * HD;
    floats[SPARE] = kv_rows * HD;
    if (n.backward) {
        floats[D_V] = kv_rows * (size_t)config_kv_width(s->c);
        floats[STATS] = kv_rows * heads * NORM_STATS;
        return;
    }
    floats[O_1] = floats[MIXED] = rows * HD;
}

/* Rows [heads, 2, dh] of queries or keys become [2, heads, dh], or `back`. */
static void turned(const struct part_call *t, struct seq_rows x, int rows, int heads, bool back)
{
    const ptrdiff_t dh = t->s->c->dh, width = 2 * heads * dh, all = (ptrdiff_t)t->n.B * rows;
    float *const spare = back ? t->d_at[SPARE] : t->at[SPARE];

    CHECK(spare);
#pragma omp parallel for num_threads(team_for(t->g->threads, all *width))
    for (ptrdiff_t r = 0; r < all; r++) {
        float *const row = x.at + r / rows * x.stride + r % rows * width;
        float *const copy = spare + r * width;
        memcpy(copy, row, sizeof(float) * (size_t)width);
        for (int h = 0; h < 2 * heads; h++) {
            const ptrdiff_t pair = h * dh, map = (h % 2 * heads + h / 2) * dh;
            memcpy(row + (back ? pair : map), copy + (back ? map : pair),
                   sizeof(float) * (size_t)dh);
        }
    }
}

static struct attn softmax(const struct part_call *t, const struct attn *a, int map)
{
    struct attn one = *a;

    one.q += (ptrdiff_t)map * a->H * a->dh;
    one.k += (ptrdiff_t)map * a->Hkv * a->dh;
    one.o = t->at[O_1 + map];
    if (one.lse)
        one.lse += (ptrdiff_t)map * a->B * a->H * a->L;
    return one;
}

static double lambda_init(const struct sublayer *s)
{
    const struct diff *const own = config_numbers(s->c, SLOT_head_diff);
    const double given = (double)own->lambda_init;

    return given != 0 ? given : 0.8 - 0.6 * exp(-0.3 * s->layer);
}

/* l, and its exponentials. */
static float lambda_of(const struct part_call *t, double part[2])
{
    for (int map = 0; map < 2; map++) {
        const float *const q = t->param[LAMBDA_Q1 + 2 * map].data;
        const float *const k = t->param[LAMBDA_K1 + 2 * map].data;
        double sum = 0;
        for (int e = 0; e < t->s->c->dh; e++)
            sum += (double)q[e] * (double)k[e];
        part[map] = exp(sum);
    }
    return (float)(part[0] - part[1] + lambda_init(t->s));
}

static void join(const struct part_call *t, float *o)
{
    const struct config *const c = t->s->c;
    const ptrdiff_t all = (ptrdiff_t)t->n.B * t->n.L * config_q_width(c);
    const float *const o_1 = t->at[O_1], *const o_2 = t->at[O_2];
    float *const mixed = t->at[MIXED];
    double part[2];
    const float lambda = lambda_of(t, part), rest = (float)(1 - lambda_init(t->s));

    CHECK(mixed && o_1 && o_2);
#pragma omp parallel for simd num_threads(team_for(t->g->threads, all))
    for (ptrdiff_t e = 0; e < all; e++)
        mixed[e] = o_1[e] - lambda * o_2[e];
    t->g->ops.norm(&(struct norm){.kind = NORM_RMS,
                                  .y = o,
                                  .x = mixed,
                                  .weight = t->param[NORM].data,
                                  .rows = t->n.B * t->n.L * c->H,
                                  .n = 2 * c->dh,
                                  .eps = c->head_eps,
                                  .threads = t->g->threads});
#pragma omp parallel for simd num_threads(team_for(t->g->threads, all))
    for (ptrdiff_t e = 0; e < all; e++)
        o[e] *= rest;
}

/* ---- backward ----------------------------------------------------------------------------- */

/* d lambda reaches the vectors through the two exponentials. */
static void lambda_grad(const struct part_call *t, double d, const double part[2])
{
    for (int map = 0; map < 2; map++) {
        const struct param *const q = &t->param[LAMBDA_Q1 + 2 * map];
        const struct param *const k = &t->param[LAMBDA_K1 + 2 * map];
        const double x = (map ? -d : d) * part[map];
        for (int e = 0; e < t->s->c->dh; e++) {
            q->grad[e] += (float)(x * (double)k->data[e]);
            k->grad[e] += (float)(x * (double)q->data[e]);
        }
    }
}

/* do_1 in place of d_o, do_2 = -lambda do_1. */
static void join_grad(const struct part_call *t, float *d_o)
{
    const struct config *const c = t->s->c;
    const ptrdiff_t all = (ptrdiff_t)t->n.B * t->n.L * config_q_width(c);
    float *const d_2 = t->d_at[O_2];
    double part[2];
    const float lambda = lambda_of(t, part), rest = (float)(1 - lambda_init(t->s));

#pragma omp parallel for simd num_threads(team_for(t->g->threads, all))
    for (ptrdiff_t e = 0; e < all; e++)
        d_o[e] *= rest;
    around_norm_grad(t, &t->param[NORM], d_o, t->at[MIXED], t->d_at[STATS], t->n.B * t->n.L * c->H);
    lambda_grad(t, -dot_in_order(d_o, t->at[O_2], all), part);
#pragma omp parallel for simd num_threads(team_for(t->g->threads, all))
    for (ptrdiff_t e = 0; e < all; e++)
        d_2[e] = -lambda * d_o[e];
}

static struct attn_grad softmax_grad(const struct part_call *t, const struct attn_grad *d, int map)
{
    struct attn_grad one = *d;

    if (map == 0)
        return one;
    one.d_o = t->d_at[O_2];
    one.d_q += t->s->c->H * t->s->c->dh;
    one.d_k += t->s->c->kv_heads * t->s->c->dh;
    one.d_v = t->d_at[D_V];
    return one;
}

static void softmaxes_grad(const struct part_call *t, struct attn_grad *d)
{
    const ptrdiff_t all = (ptrdiff_t)t->n.B * t->n.K * config_kv_width(t->s->c);

    for (ptrdiff_t e = 0; e < all; e++)
        d->d_v[e] += t->d_at[D_V][e];
}

const struct around_part head_diff = {
    .said = "differences of heads",
    .numbers = &numbers,
    /* the second softmax has no tables and no terms */
    .excludes = EXCLUDES(HAS_TABLES, HAS_EXTRA, HAS_TERMS, HAS_SCORE_RESIDUAL, HAS_head_capsules,
                         HAS_MASKED),
    .reads_cache = true,
    .params = declare,
    .arrays = arrays,
    .map = {.turned = turned,
            .softmax = softmax,
            .join = join,
            .join_grad = join_grad,
            .softmax_grad = softmax_grad,
            .softmaxes_grad = softmaxes_grad},
};

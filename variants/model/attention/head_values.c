/* SPDX-License-Identifier: MIT
 *
 * Values mixed with the first attention's, in all others (Zhou et al. 2024, arXiv:2410.17897):
 *
 *   v <- m_0 v + m_1 v of the first attention */
#include "around.h"

enum { RAW_V }; /* [B,K,Hkv,dh] before they are mixed */

/* Is it not the first? */
static bool mixes(const struct sublayer *s) { return s->bare || s->nth > 0; }

static void declare(const struct sublayer *s, const char *prefix, struct params *p)
{
    const int two = 2;

    if (mixes(s))
        params_vector(p, INIT_CONST, 0.5f, two, prefix, "attn.v_mix");
}

static void arrays(const struct sublayer *s, struct around_call n, size_t floats[AROUND_ARRAYS])
{
    if (mixes(s) && !n.backward)
        floats[RAW_V] = (size_t)n.B * (size_t)n.K * (size_t)config_kv_width(s->c);
}

/* The first attention's values [B,K,Hkv,dh], which it leaves for all others. */
static struct array shared(const struct sublayer *s, struct extent max, bool backward)
{
    const size_t rows = (size_t)max.B * (size_t)(max.M + max.L);
    const size_t n = rows * (size_t)config_kv_width(s->c);

    if (s->mem == MEM_KV)
        return (struct array){0};
    return (struct array){backward ? 0 : n, n, true, PART_ACTIVATIONS};
}

/* Those of the n.K rows that end at stream position `end`. */
static struct seq_rows first_values(const struct part_call *t, int64_t end)
{
    const struct sublayer *const s = t->s;
    const int kv_width = config_kv_width(s->c);
    const struct cache *const cache = &s->first->state.attention.values;

    if (s->mem != MEM_KV)
        return (struct seq_rows){t->w->array[AT_V0], (ptrdiff_t)t->n.K * kv_width};
    const ptrdiff_t row = (ptrdiff_t)(end - t->n.K - cache_base(cache));
    CHECK(row >= 0);
    return (struct seq_rows){cache_rows(cache, 0) + row * kv_width, cache_stride(cache)};
}

static void values(const struct part_call *t, struct seq_rows v, int64_t end)
{
    const ptrdiff_t row = (ptrdiff_t)t->n.K * config_kv_width(t->s->c);

    if (!mixes(t->s)) { /* a cache is read where it is */
        for (int b = 0; b < t->n.B && t->s->mem != MEM_KV; b++)
            memcpy(t->w->array[AT_V0] + b * row, v.at + b * v.stride, sizeof(float) * (size_t)row);
        return;
    }
    const struct seq_rows first = first_values(t, end);
    const float *const m = t->param->data;
    CHECK(t->at[RAW_V]);
    for (int b = 0; b < t->n.B; b++) {
        float *const at = v.at + b * v.stride, *const kept = t->at[RAW_V] + b * row;
        const float *const v0 = first.at + b * first.stride;
#pragma omp parallel for simd num_threads(team_for(t->g->threads, row))
        for (ptrdiff_t e = 0; e < row; e++) {
            kept[e] = at[e];
            at[e] = m[0] * at[e] + m[1] * v0[e];
        }
    }
}

/* d_v of the mixed values becomes that of this layer's; the first attention's collects its share.
 */
static void operands_grad(const struct part_call *t, struct attn_grad *d)
{
    const ptrdiff_t all = (ptrdiff_t)t->n.B * t->n.K * config_kv_width(t->s->c);
    float *const d_first = t->w->d_array[AT_V0], *const d_v = d->d_v;

    if (!t->w->above || t->s->bare) /* nothing has arrived yet */
        memset(d_first, 0, sizeof(float) * (size_t)all);
    if (!mixes(t->s)) {
#pragma omp parallel for simd num_threads(team_for(t->g->threads, all))
        for (ptrdiff_t e = 0; e < all; e++)
            d_v[e] += d_first[e];
        return;
    }
    const struct param *const mix = t->param;
    const float m0 = mix->data[0], m1 = mix->data[1];
    mix->grad[0] += (float)dot_in_order(d_v, t->at[RAW_V], all);
    mix->grad[1] += (float)dot_in_order(d_v, t->w->array[AT_V0], all);
#pragma omp parallel for simd num_threads(team_for(t->g->threads, all))
    for (ptrdiff_t e = 0; e < all; e++) {
        d_first[e] += m1 * d_v[e];
        d_v[e] *= m0;
    }
}

const struct around_part head_values = {
    .said = "values of the first layer",
    .numbers = AROUND_SWITCH("value_residual", NULL, .absent = "0", .scope = SCOPE_MODEL),
    .excludes = EXCLUDES(HAS_STEPS, HAS_SUBS), /* of one layer, or with several attentions */
    .reads_cache = true,
    .params = declare,
    .arrays = arrays,
    .map = {.values = values, .operands_grad = operands_grad, .shared = shared},
};

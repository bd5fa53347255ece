/* SPDX-License-Identifier: MIT
 *
 * What forms of attention to fewer keys have in common: rows of a call, caches, projections. */
#include "condensed.h"
#include "variants/model/attention/sublayer_attention.h"

#include <string.h>

/* ---- rows of a call ----------------------------------------------------------------------- */

int stretch_lead(const struct stretch *t, int size)
{
    return (int)((size - t->first % size) % size);
}

/* Whole groups behind them. */
static int stretch_groups(const struct stretch *t, int size)
{
    return max_int(0, t->rows - stretch_lead(t, size)) / size;
}

/* Room of far rows for so many rows. */
static int condensed_room(struct grouping of, int rows)
{
    return of.size ? rows / of.size * of.rows + (of.beside ? of.size : 1) : 0;
}

/* ---- binding ------------------------------------------------------------------------------ */

int condensed_keeps(const struct sublayer *s, enum mem_kind mem, int M)
{
    return mem == MEM_HIDDEN ? M : -1;
}

/* Rows of an incomplete group, and far rows, of M remembered tokens; none without groups. */
static int tail_rows(struct grouping of, int M) { return max_int(0, min_int(M, of.size - 1)); }
static int far_rows(struct grouping of, int M) { return of.size ? M / of.size * of.rows : 0; }

size_t condensed_cached(const struct sublayer *s, struct grouping of, int M)
{
    const int rows = tail_rows(of, M) + far_rows(of, M);

    return 2 * (size_t)rows * (size_t)config_kv_width(s->c);
}

void condensed_bind(struct sublayer *s, struct grouping of, struct extent max, struct arena *a)
{
    struct grouped *const t = &s->state.grouped;
    const int width = config_kv_width(s->c), tail = tail_rows(of, max.M);
    const int room = condensed_room(of, tail + max.L), far = far_rows(of, max.M);

    *t = (struct grouped){.size = of.size, .rows = of.rows, .reach = max.M};
    if (s->mem != MEM_KV)
        return;
    cache_bind(&t->attention.keys, max.B, max.L, tail, width, a);
    cache_bind(&t->attention.values, max.B, max.L, tail, width, a);
    cache_bind(&t->far_keys, max.B, room, far, width, a);
    cache_bind(&t->far_values, max.B, room, far, width, a);
}

void condensed_arrays(const struct sublayer *s, struct grouping of, struct extent max,
                      struct array out[SUB_ARRAYS])
{
    const bool kv = s->mem == MEM_KV;
    const int before = s->mem == MEM_HIDDEN ? max.M : 0;
    const size_t B = (size_t)max.B, width = (size_t)config_kv_width(s->c);
    const size_t q = B * (size_t)max.L * (size_t)config_q_width(s->c);
    const size_t k = kv ? 0 : B * (size_t)(before + max.L) * width;
    const size_t far = kv ? 0 : B * (size_t)condensed_room(of, before + max.L) * width;

    out[CO_Q] = out[CO_O] = (struct array){q, q, false, PART_ACTIVATIONS};
    out[CO_K] = out[CO_V] = (struct array){k, k, false, PART_ACTIVATIONS};
    out[CO_LSE] = (struct array){0, q / (size_t)s->c->dh, false, PART_ACTIVATIONS};
    out[CO_FAR_K] = out[CO_FAR_V] = (struct array){far, far, false, PART_ACTIVATIONS};
}

/* ---- forward ------------------------------------------------------------------------------ */

/* Cached rows of the group that is not complete; those before them belong to far rows. */
static int waiting(const struct grouped *t)
{
    const struct cache *const keys = &t->attention.keys;

    return min_int(keys->M, (int)(keys->seen % t->size));
}

/* Cached far rows of groups that have been forgotten in part. */
static int forgotten(const struct grouped *t)
{
    const int64_t seen = t->attention.keys.seen, base = seen > t->reach ? seen - t->reach : 0;
    const int64_t oldest = seen / t->size - t->far_keys.M / t->rows;
    const int64_t whole = (base + t->size - 1) / t->size; /* the first that is remembered whole */

    return (int)(whole > oldest ? whole - oldest : 0) * t->rows;
}

static struct seq_rows rows_from(const struct cache *cache, int row)
{
    return (struct seq_rows){cache_rows(cache, 0) + (ptrdiff_t)row * cache->n, cache_stride(cache)};
}

static struct stretch cached_stretch(struct grouped *t, struct grouping of, int L)
{
    const struct attention *const near = &t->attention;
    const int tail = waiting(t), skip = min_int(forgotten(t), t->far_keys.M);
    const int room = condensed_room(of, tail + L);

    cache_reserve(&t->far_keys, room);
    cache_reserve(&t->far_values, room);
    return (struct stretch){.k = rows_from(&near->keys, near->keys.M - tail),
                            .v = rows_from(&near->values, near->values.M - tail),
                            .rows = tail + L,
                            .first = near->keys.seen - tail,
                            .far_k = rows_from(&t->far_keys, skip),
                            .far_v = rows_from(&t->far_values, skip),
                            .n_far = t->far_keys.M - skip};
}

struct stretch condensed_again(const struct sublayer *s, const struct work *w,
                               struct sublayer_input from, struct grouping of)
{
    const int rows = from.M + from.L, width = config_kv_width(s->c);
    const ptrdiff_t all = (ptrdiff_t)rows * width;
    const ptrdiff_t room = (ptrdiff_t)condensed_room(of, rows) * width;

    CHECK(s->mem != MEM_KV);
    return (struct stretch){.k = {w->array[CO_K], all},
                            .v = {w->array[CO_V], all},
                            .rows = rows,
                            .first = cache_base(&s->memory),
                            .far_k = {w->array[CO_FAR_K], room},
                            .far_v = {w->array[CO_FAR_V], room}};
}

struct stretch condensed_project(const struct engine *g, struct sublayer *s, const struct work *w,
                                 struct sublayer_input from, struct grouping of, bool queries)
{
    struct grouped *const t = &s->state.grouped;
    const bool kv = s->mem == MEM_KV;
    const int rows = from.M + from.L;
    const ptrdiff_t all = (ptrdiff_t)rows * config_kv_width(s->c);
    const struct seq_rows fresh = {from.at.at + (ptrdiff_t)from.M * s->c->D, from.at.stride};
    const struct seq_rows q = {w->array[CO_Q], (ptrdiff_t)from.L * config_q_width(s->c)};
    const struct seq_rows k =
        kv ? cache_new_rows(&t->attention.keys, rows) : (struct seq_rows){w->array[CO_K], all};
    const struct seq_rows v =
        kv ? cache_new_rows(&t->attention.values, rows) : (struct seq_rows){w->array[CO_V], all};

    if (queries)
        project_rows(g, s, ATTN_Q, q, fresh, from.B, from.L);
    project_rows(g, s, ATTN_K, k, from.at, from.B, rows);
    project_rows(g, s, ATTN_V, v, from.at, from.B, rows);
    const struct stretch now = kv ? cached_stretch(t, of, from.L) : condensed_again(s, w, from, of);
    t->fresh = of.size ? stretch_groups(&now, of.size) * of.rows : 0;
    return now;
}

/* ---- backward ----------------------------------------------------------------------------- */

void condensed_out_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                        const float *d_y, int rows)
{
    project_out_grad(g, s, w->d_array[CO_O], d_y, w->array[CO_O], rows);
}

void condensed_in_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                       struct sublayer_input from, float *d_in, int skip)
{
    const struct project_grad d = {w->d_array[CO_Q], w->d_array[CO_K], w->d_array[CO_V]};

    project_backward(g, s, from, d_in, d, skip);
}

void condensed_clear(struct seq_rows x, int B)
{
    memset(x.at, 0, sizeof(float) * (size_t)(B * x.stride));
}

void condensed_add(struct seq_rows to, struct seq_rows from, int B, int rows, int width)
{
    const ptrdiff_t n = (ptrdiff_t)rows * width;

    for (int b = 0; b < B; b++)
        for (ptrdiff_t i = 0; i < n; i++)
            to.at[b * to.stride + i] += from.at[b * from.stride + i];
}

/* ---- memory ------------------------------------------------------------------------------- */

/* Far rows of a call follow those that are seen, which may be fewer than are cached. */
void condensed_commit(struct sublayer *s, int L)
{
    struct grouped *const t = &s->state.grouped;

    if (s->mem != MEM_KV)
        return;
    attention_commit(s, L);
    cache_commit(&t->far_keys, t->fresh);
    cache_commit(&t->far_values, t->fresh);
}

void condensed_forget(struct sublayer *s)
{
    struct grouped *const t = &s->state.grouped;

    attention_forget(s);
    cache_clear(&t->far_keys);
    cache_clear(&t->far_values);
}

/* ---- the implementation, and cost ---------------------------------------------------------- */

struct attn_need condensed_scratch(const struct sublayer *s, const struct engine *g, bool backward)
{
    const struct attention *const t = &s->state.attention;

    return (backward ? t->impl->need_backward : t->impl->need)(&t->prepared, g->threads);
}

double condensed_maps_flop(const struct sublayer *s, int B, int L, int M)
{
    const struct config *const c = s->c;
    const double rows = (double)B * L, all = (double)B * (s->mem == MEM_HIDDEN ? M + L : L);

    return 4 * rows * c->D * config_q_width(c) + 4 * all * c->D * config_kv_width(c);
}

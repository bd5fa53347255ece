/* SPDX-License-Identifier: MIT
 *
 * Attention as a kind of sub-layer: q of the new rows, k and v of memory and new rows, the
 * attention that the position scheme describes, W_o. Remembers hidden states (by the wiring) or
 * keys and values (here). */
#include "sublayer_attention.h"
#include "variants/model/sublayer/sublayer_compress.h"
#include "variants/model/sublayer/sublayer_inner.h"
#include "variants/model/sublayer/sublayer_seen.h"
#include "variants/parts/masks.h"

struct attn attn_of_config(const struct config *c, int B, int L, int M)
{
    const ptrdiff_t row = config_q_width(c), kv_row = config_kv_width(c);

    return (struct attn){
        .B = B,
        .H = c->H,
        .Hkv = c->kv_heads,
        .L = L,
        .M = M,
        .dh = c->dh,
        .dv = config_maps(c) > 1 ? config_maps(c) * c->dh : 0,
        .window = config_window(c, 0),
        .causal = c->causal,
        .scale = c->scale,
        .no_content = c->pos->no_content,
        .soft_cap = c->soft_cap,
        .q_at = {.batch = L * row, .row = row},
        .k_at = {.batch = (M + L) * kv_row, .row = kv_row},
        .v_at = {.batch = (M + L) * kv_row, .row = kv_row},
        .o_at = {.batch = L * row, .row = row},
    };
}

/* ---- declaration and binding -------------------------------------------------------------- */

static void attention_params(const struct sublayer *s, const char *layer, const char *prefix,
                             struct params *p)
{
    const struct config *const c = s->c;

    project_params(s, attention_width(c), attention_width(c), prefix, p);
    if (c->pos->layer_params && !s->lazy)
        c->pos->layer_params(c, prefix, p);
}

/* Rows that wait for compression must be there; the bare operator has all that it is given; layers
 * that read scores or values of another have the same rows. */
int attention_kept(const struct sublayer *s, int M)
{
    const struct config *const c = s->c;
    const bool alike = c->score_residual || around_shares(c);
    int kept = config_kept(c, s->layer, M);

    if (compressive_of(c)->rows || (s->bare && !c->stream_sinks))
        return M;
    for (int layer = 0; alike && layer < c->N; layer++)
        kept = max_int(kept, config_kept(c, layer, M));
    return kept;
}

int attention_needed(const struct sublayer *s, int M)
{
    return min_int(attention_kept(s, M), config_needed(s->c, s->layer, M));
}

static int attention_keeps(const struct sublayer *s, enum mem_kind mem, int M)
{
    return mem == MEM_HIDDEN ? attention_kept(s, M) : -1;
}

/* Are its keys and values cached in a narrower type? */
static bool narrow(const struct sublayer *s)
{
    return s->mem == MEM_KV && s->c->kv_dtype != ELEM_F32;
}

/* Floats that a cached row of keys or of values takes: whole ones. */
static int cached_floats(const struct config *c)
{
    return (int)(elem_heads_bytes(c->kv_dtype, config_kv_width(c) / c->dh, c->dh) / sizeof(float));
}

static size_t attention_caches(const struct sublayer *s, int M)
{
    const struct config *const c = s->c;
    const int row = (s->asks ? 2 : 1) * cached_floats(c) + around_cached(c);

    return (size_t)attention_kept(s, M) * (size_t)row;
}

/* Is anything but the core done with keys or values that are remembered? */
static bool reads_cache(const struct config *c) { return c->stream_sinks || around_reads_cache(c); }

/* Does the core multiply numbers of bf16? It is trained in f32. */
static bool multiplies_bf16(const struct sublayer *s, const struct engine *g)
{
    return !g->rounds && s->c->dtype == ELEM_BF16 && !reads_cache(s->c) && s->level == 0 &&
           (s->mem != MEM_KV || s->c->kv_dtype == ELEM_BF16);
}

static enum status attention_bind(struct sublayer *s, const struct engine *g, struct extent max,
                                  struct arena *a, struct err *e)
{
    const struct config *c = s->c;
    struct attention *t = &s->state.attention;
    const int cached = cached_floats(c), kept = attention_kept(s, max.M);

    CHECK(around_complete(s));
    if (narrow(s) && reads_cache(c))
        return kv_unsupported(c, e);
    *t = (struct attention){.pos = s->weights + project_n_params(s)};
    attention_caches_bind(s, max, kept, (const int[]){s->asks * cached, cached, around_cached(c)},
                          a);
    struct cache *const caches[] = {&t->keys, &t->values, &s->memory};
    for (size_t i = 0; i < ARRAY_LEN(caches); i++)
        caches[i]->stay = min_int(c->stream_sinks, caches[i]->keep);
    if (compressive_of(c)->rows && s->mem == MEM_KV)
        return fail(e, E_UNSUPPORTED,
                    "compressing memory needs the rows themselves  -> use --mem-kind hidden");
    const bool remembers = sublayer_remembers(s);
    t->reach = max.M + max.L; /* tables have the rows of the model's encodings */
    t->prepared = attn_of_config(c, max.B, max.L, remembers ? kept : 0);
    t->prepared.window = config_window(c, s->layer);
    t->prepared.scale /= c->depth_scale ? (float)(s->layer + 1) : 1;
    t->prepared.no_content = !s->asks;
    t->prepared.bf16 = multiplies_bf16(s, g);
    const struct term_params p = attention_term_params(s);
    terms_reserve(c, s->lazy ? NULL : &p, s->layer, max.L, t->reach, a, &t->prepared);
    if (s->level) /* at least one pool group: the implementation is selected now */
        attention_resize(s, &t->prepared, max_int(rows_before(s, max.L), 1 + s->pools), 0);
    const struct attn copy = attention_for_impl(s);
    return engine_attn(g, &copy, &t->impl, e);
}

static void attention_arrays(const struct sublayer *s, struct extent max,
                             struct array out[SUB_ARRAYS])
{
    max.M = attention_kept(s, max.M);
    const size_t HD = (size_t)config_q_width(s->c);
    const size_t kv_width = (size_t)config_kv_width(s->c);
    const size_t query_rows = (size_t)max.B * (size_t)attention_query_rows(s, max.L),
                 q = query_rows * HD;
    const bool cached = s->mem == MEM_KV;
    const size_t rows = (size_t)max.B * (size_t)(cached ? max.L : max.L + max.M);
    const size_t k = cached && !narrow(s) ? 0 : rows * kv_width;
    const size_t lse = query_rows * (size_t)(config_maps(s->c) * s->c->H);
    const size_t pooled = s->pools ? query_rows * (size_t)s->c->D : 0;

    out[AT_O] = (struct array){q, q, false, PART_ACTIVATIONS};
    out[AT_V] = (struct array){k, k, false, PART_ACTIVATIONS};
    if (s->asks) {
        out[AT_Q] = out[AT_O];
        out[AT_K] = out[AT_V];
    }
    out[AT_LSE] = (struct array){0, lse, false, PART_ACTIVATIONS};
    out[AT_QKV_MAP] = attention_map_array(s, max);
    const size_t scores = attention_scores_floats(s, max);
    out[AT_SCORES] = (struct array){scores, scores, false, PART_SCORES};
    out[AT_POOLED] = (struct array){pooled, pooled, false, PART_ACTIVATIONS};
    out[AT_AROUND] = around_array(s, max, false);
    out[AT_V0] = around_shared(s, max, false);
    out[AT_SLOTS] = streaming_array(s, max);
}

static void attention_arrays_grad(const struct sublayer *s, struct extent max,
                                  struct array out[SUB_ARRAYS])
{
    max.M = attention_kept(s, max.M);
    attention_arrays(s, max, out);
    for (int i = AT_Q; i <= AT_O; i++) {
        out[i].n = 0;
        out[i].shared = true;
    }
    out[AT_D_TABLES] =
        (struct array){0, terms_n_tables_grad(s->c, s->state.attention.reach), true, PART_REL_POS};
    out[AT_POOLED].n = 0;
    out[AT_POOLED].shared = true;
    out[AT_SCORES].n = 0;
    out[AT_SCORES].shared = true;
    out[AT_QKV_MAP] = attention_map_array_grad(s, max);
    out[AT_AROUND] = around_array(s, max, true);
    out[AT_V0] = around_shared(s, max, true);
}

static struct attn_need attention_scratch(const struct sublayer *s, const struct engine *g,
                                          bool backward)
{
    const struct attn_impl *impl = s->state.attention.impl;
    const struct attn copy = attention_for_impl(s);

    struct attn_need need =
        backward ? impl->need_backward(&copy, g->threads) : impl->need(&copy, g->threads);

    if (backward) {
        const struct extent max = {copy.B, copy.L, copy.M};
        const size_t other = sublayer_reconstruction_floats(s, max) * sizeof(float);
        const size_t have = need.scores_bytes + need.scratch_bytes;
        need.scratch_bytes += other > have ? other - have : 0;
    }
    return need;
}

static void attention_build_tables(const struct engine *g, struct sublayer *s,
                                   const float *pos_encoding)
{
    struct attention *t = &s->state.attention;

    t->pos_encoding = pos_encoding;
    const struct term_params p = attention_term_params(s);
    if (s->lazy)
        return;
    terms_build_tables(g, s->c, &p, pos_encoding, &t->prepared);
}

/* ---- forward ------------------------------------------------------------------------------ */

/* Where `rows` new rows of keys (AT_K) or values (AT_V) are computed: in the cache, after those
 * that are there, or on their way to a narrower one. */
static struct seq_rows new_rows(struct sublayer *s, const struct work *w, int which, int rows)
{
    struct attention *const t = &s->state.attention;
    struct cache *const cache = which == AT_K ? &t->keys : &t->values;

    if (s->mem == MEM_KV)
        cache_reserve(cache, rows);
    if (s->mem == MEM_KV && !narrow(s))
        return (struct seq_rows){cache_rows(cache, 0) + (ptrdiff_t)cache->M * cache->n,
                                 cache_stride(cache)};
    return (struct seq_rows){w->array[which], (ptrdiff_t)rows * config_kv_width(s->c)};
}

/* Rows of q, k or v of `width` numbers become numbers of bf16. */
static void round_rows(const struct engine *g, struct seq_rows x, int B, int rows, int width)
{
#pragma omp parallel for collapse(2) num_threads(team_for(g->threads, (ptrdiff_t)B *rows *width))
    for (int b = 0; b < B; b++)
        for (int i = 0; i < rows; i++)
            bf16_round(x.at + b * x.stride + (ptrdiff_t)i * width, (size_t)width);
}

/* Round them into a narrow cache. */
static void store_rows(const struct engine *g, const struct sublayer *s, struct cache *cache,
                       struct seq_rows x, int B, int rows)
{
    const int width = config_kv_width(s->c);

#pragma omp parallel for collapse(2) num_threads(team_for(g->threads, (ptrdiff_t)B *rows *width))
    for (int b = 0; b < B; b++)
        for (int i = 0; i < rows; i++)
            elem_heads_narrow(
                s->c->kv_dtype, cache_rows(cache, b) + (ptrdiff_t)(cache->M + i) * cache->n,
                x.at + b * x.stride + (ptrdiff_t)i * width, width / s->c->dh, s->c->dh);
}

/* Finished rows of keys or values: what is left to do is to round them. */
static void keep_rows(const struct engine *g, const struct sublayer *s, struct cache *cache,
                      struct seq_rows x, int B, int rows)
{
    if (narrow(s))
        store_rows(g, s, cache, x, B, rows);
    else if (s->state.attention.prepared.bf16 && !s->state.attention.impl->rounds)
        round_rows(g, x, B, rows, config_kv_width(s->c));
}

/* Of rows that it has projected: keys, or values where there are none. */
static const struct cache *attention_cache(const struct sublayer *s)
{
    return s->asks ? &s->state.attention.keys : &s->state.attention.values;
}

int64_t attention_base(const struct sublayer *s)
{
    return cache_base(s->mem == MEM_KV ? attention_cache(s) : &s->memory);
}

void attention_turn(const struct engine *g, const struct sublayer *s, struct seq_rows x, int B,
                    int rows, int heads, int width, int64_t position, bool back)
{
    s->c->pos->rotate(g, s->c, s->state.attention.pos_encoding,
                      &(struct rotation){.x = x.at,
                                         .stride = x.stride,
                                         .B = B,
                                         .rows = rows,
                                         .heads = heads,
                                         .width = width,
                                         .position = position,
                                         .layer = s->layer,
                                         .back = back});
}

void attention_rotate(const struct engine *g, const struct sublayer *s, struct seq_rows x, int B,
                      int rows, int heads, int64_t position, bool back)
{
    if (s->c->pos->rotate && !s->c->stream_sinks) /* which rotates them later */
        attention_turn(g, s, x, B, rows, heads, s->c->dh, position, back);
}

struct part_call attention_call(const struct engine *g, const struct sublayer *s,
                                const struct work *w, int B, int L)
{
    const int M = attention_memory(s), queries = attention_query_rows(s, L);

    return (struct part_call){
        .g = g, .s = s, .w = w, .n = {B, queries, s->mem == MEM_KV ? L : M + L, M + L, false}};
}

/* The rows end at stream position `end`. */
static void project_kv(const struct engine *g, struct sublayer *s, const struct work *w,
                       struct seq_rows k, struct seq_rows v, struct sublayer_input from,
                       int64_t end)
{
    const int rows = from.M + from.L;
    const struct part_call all = attention_call(g, s, w, from.B, from.L);

    project_rows(g, s, ATTN_V, v, from.at, from.B, rows);
    if (s->asks) {
        project_rows(g, s, ATTN_K, k, from.at, from.B, rows);
        AROUND_EACH(map.keys, &all, k);
    }
    AROUND_EACH(map.values, &all, v, end);
    if (s->state.attention.beside.n)
        cache_reserve(&s->state.attention.beside, all.n.K);
    AROUND_EACH(term.source, &all, from.at);
    keep_rows(g, s, &s->state.attention.values, v, from.B, rows);
    if (!s->asks)
        return;
    attention_rotate(g, s, k, from.B, rows, config_maps(s->c) * s->c->kv_heads, end - rows, false);
    AROUND_EACH(map.turned, &all, k, rows, s->c->kv_heads, false);
    keep_rows(g, s, &s->state.attention.keys, k, from.B, rows);
}

int attention_memory(const struct sublayer *s)
{
    return s->mem == MEM_KV ? attention_cache(s)->M : s->memory.M;
}

/* Pool groups are placed at their last tokens, or at their first if attention is not causal, and
 * distances count tokens: the tables stay as long for fewer groups. */
void attention_resize(const struct sublayer *s, struct attn *a, int L, int M)
{
    if (s->level == 0) {
        attn_resize(a, L, M);
        return;
    }
    a->L = attention_query_rows(s, L);
    a->M = L - a->L;
    a->q_step = 1 << s->level;
    a->k_step = 1 << (s->level - s->pools);
    a->q_first = a->causal ? a->q_step - a->k_step : 0;
}

struct attn attention_operands(const struct sublayer *s, const struct work *w, int B, int L)
{
    const struct attention *t = &s->state.attention;
    const bool kv = s->mem == MEM_KV;
    const ptrdiff_t HD = config_q_width(s->c), kv_width = config_kv_width(s->c);
    const int M = attention_memory(s);
    struct attn a = t->prepared;

    attention_resize(s, &a, L, M);
    a.B = B;
    a.q = w->array[AT_Q];
    a.o = w->array[AT_O];
    a.lse = w->array[AT_LSE];
    a.base = attention_base(s);
    masks_draw(&s->c->masks, s->nth, &a);
    attention_score_residual(s, w, &a);
    const struct part_call all = attention_call(NULL, s, w, B, L);
    around_scores(&all, &a);
    a.q_at.batch = a.o_at.batch = a.L * HD;
    if (narrow(s) && s->c->kv_dtype == ELEM_Q8) {
        a.k_q8 = s->asks ? (const uint32_t *)(const void *)cache_rows(&t->keys, 0) : NULL;
        a.v_q8 = (const uint32_t *)(const void *)cache_rows(&t->values, 0);
        a.k_at.batch = a.v_at.batch = cache_stride(&t->values);
        a.k_at.row = a.v_at.row = t->values.n;
        return a;
    }
    if (narrow(s)) {
        a.k_bf16 = s->asks ? (const uint16_t *)(const void *)cache_rows(&t->keys, 0) : NULL;
        a.v_bf16 = (const uint16_t *)(const void *)cache_rows(&t->values, 0);
        a.k_at.batch = a.v_at.batch = 2 * cache_stride(&t->values); /* two in a float */
        a.k_at.row = a.v_at.row = 2 * (ptrdiff_t)t->values.n;
        return a;
    }
    a.unrounded = a.bf16 && t->impl->rounds;
    a.k = !s->asks ? NULL : kv ? cache_rows(&t->keys, 0) : w->array[AT_K];
    a.v = kv ? cache_rows(&t->values, 0) : w->array[AT_V];
    a.k_at.batch = a.v_at.batch = kv ? cache_stride(&t->values) : (M + L) * kv_width;
    return a;
}

/* The rows that queries were projected from: after the memory, or pooled. */
static struct seq_rows query_source(const struct sublayer *s, const struct work *w,
                                    struct sublayer_input from)
{
    const ptrdiff_t pooled = (ptrdiff_t)attention_query_rows(s, from.L) * s->c->D;

    return s->pools ? (struct seq_rows){w->array[AT_POOLED], pooled}
                    : (struct seq_rows){from.at.at + (ptrdiff_t)from.M * attention_width(s->c),
                                        from.at.stride};
}

struct attn attention_project(const struct engine *g, struct sublayer *s, struct work *w,
                              struct sublayer_input from)
{
    const struct config *c = s->c;
    const ptrdiff_t HD = config_q_width(c);
    const int64_t end = attention_base(s) + attention_memory(s) + from.L;
    const int K = from.M + from.L; /* rows whose keys are projected in this call */

    from = attention_mapped(g, s, w, from);
    const int query_rows = attention_query_rows(s, from.L);
    const struct seq_rows fresh = query_source(s, w, from);
    const struct seq_rows q = {w->array[AT_Q], query_rows * HD};
    const struct seq_rows k = s->asks ? new_rows(s, w, AT_K, K) : (struct seq_rows){0};
    const struct seq_rows v = new_rows(s, w, AT_V, K);

    const struct part_call all = attention_call(g, s, w, from.B, from.L);

    if (s->asks) {
        project_rows(g, s, ATTN_Q, q, fresh, from.B, query_rows);
        AROUND_EACH(map.queries, &all, q);
        attention_rotate(g, s, q, from.B, query_rows, config_maps(c) * c->H, end - from.L, false);
        AROUND_EACH(map.turned, &all, q, query_rows, c->H, false);
        if (s->state.attention.prepared.bf16 && !s->state.attention.impl->rounds)
            round_rows(g, q, from.B, query_rows, (int)HD);
    }
    project_kv(g, s, w, k, v, from, end);
    const struct attn a = attention_operands(s, w, from.B, from.L);
    AROUND_EACH(term.add, &all, &a, fresh);
    return c->stream_sinks ? streaming_attn(g, s, w, &a) : a;
}

const float *attention_output(const struct part_call *all)
{
    struct part_call t;

    return AROUND_ONE(map.rows, all, &t) ? t.part->map.rows(&t) : all->w->array[AT_O];
}

void attention_unproject(const struct engine *g, const struct sublayer *s, struct work *w,
                         struct sublayer_input from, struct act epilogue)
{
    const struct part_call all = attention_call(g, s, w, from.B, from.L);
    const struct seq_rows fresh = query_source(s, w, attention_mapped_again(s, w, from));
    struct part_call one;

    AROUND_EACH(map.output, &all, fresh);
    const float *const o = attention_output(&all);
    if (AROUND_ONE(map.unproject, &all, &one))
        one.part->map.unproject(&one, o, epilogue);
    else
        project_out(g, s, w, o, all.n.B * all.n.L, epilogue);
}

void attention_core(const struct engine *g, const struct sublayer *s, const struct work *w,
                    const struct attn *a)
{
    const int L = s->pools ? a->M + a->L : a->L;
    const struct part_call all = attention_call(g, s, w, a->B, L);
    struct part_call one;

    if (AROUND_ONE(term.core, &all, &one)) {
        one.part->term.core->run(&one, a);
        return;
    }
    for (int map = 0; map < config_maps(s->c); map++) {
        const struct attn softmax = around_softmax(&all, a, map);
        sublayer_attend(g, s, w, map, 0, &softmax);
    }
    AROUND_EACH(map.join, &all, w->array[AT_O]);
}

static void attention_forward(const struct engine *g, struct sublayer *s, struct work *w,
                              struct sublayer_input from, struct act epilogue)
{
    const struct attn a = attention_project(g, s, w, from);

    attention_core(g, s, w, &a);
    attention_unproject(g, s, w, from, epilogue);
}

/* ---- memory ------------------------------------------------------------------------------- */

static void attention_remember(const struct engine *g, struct sublayer *s, struct work *w,
                               struct sublayer_input from)
{
    CHECK(s->mem == MEM_KV);
    from = attention_mapped(g, s, w, from);
    const struct seq_rows k = s->asks ? new_rows(s, w, AT_K, from.L) : (struct seq_rows){0};
    const struct seq_rows v = new_rows(s, w, AT_V, from.L);
    project_kv(g, s, w, k, v, from, attention_base(s) + attention_memory(s) + from.L);
}

void attention_caches_bind(struct sublayer *s, struct extent max, int kept, const int width[3],
                           struct arena *a)
{
    struct attention *const t = &s->state.attention;
    struct cache *const caches[] = {&t->keys, &t->values, &t->beside};

    for (size_t i = 0; i < ARRAY_LEN(caches) && s->mem == MEM_KV; i++)
        if (width[i])
            cache_bind(caches[i], max.B, max.L, kept, width[i], a);
}

void attention_commit(struct sublayer *s, int L)
{
    struct attention *const t = &s->state.attention;
    struct cache *const caches[] = {&t->keys, &t->values, &t->beside};

    for (size_t i = 0; i < ARRAY_LEN(caches); i++)
        if (caches[i]->n)
            cache_commit(caches[i], L);
}

void attention_forget(struct sublayer *s)
{
    cache_clear(&s->state.attention.keys);
    cache_clear(&s->state.attention.values);
    cache_clear(&s->state.attention.beside);
}

/* ---- cost --------------------------------------------------------------------------------- */

static double attention_flop(const struct sublayer *s, int B, int L, int M)
{
    const struct config *c = s->c;
    const double HD = config_q_width(c), kv_width = config_kv_width(c);
    const double rows = (double)B * attention_query_rows(s, L);
    const bool again = s->mem == MEM_KV && c->recur == RECUR_SAME; /* of rows that left it */
    const double projected = (double)B * (s->mem == MEM_HIDDEN ? attention_kept(s, M) + L
                                          : again              ? 2 * L
                                                               : L);
    const struct attn a = attention_for_flop(s, B, L, M);
    const double in = attention_width(c);
    const double q_in = s->asks ? in : 0;
    return config_maps(c) * attn_flop(&a) + 2 * rows * (q_in + c->D) * HD /* W_q, W_o */
           + 2 * projected * (q_in + in) * kv_width                       /* W_k, W_v */
           + around_flop(s, &a, rows, projected) + attention_map_flop(s, projected);
}

static struct sublayer_cost attention_cost(const struct sublayer *s, int B, int L, int M)
{
    return (struct sublayer_cost){attention_flop(s, B, L, M), attention_grad_flop(s, B, L, M), 0};
}

const struct sublayer_kind sublayer_attention = {
    .name = "attention",
    .positions = true,
    .memory = "mem",
    .mixes = true,
    .masked = true,
    .attends = true,
    .place = DROP_ATTENTION,
    .params = attention_params,
    .keeps = attention_keeps,
    .caches = attention_caches,
    .bind = attention_bind,
    .arrays = attention_arrays,
    .arrays_grad = attention_arrays_grad,
    .scratch = attention_scratch,
    .build_tables = attention_build_tables,
    .forward = attention_forward,
    .backward = attention_backward,
    .remember = attention_remember,
    .commit = attention_commit,
    .forget = attention_forget,
    .cost = attention_cost,
};

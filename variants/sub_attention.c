/* SPDX-License-Identifier: MIT
 *
 * Attention as a kind of sub-layer: q of the new rows, k and v of memory and new rows, the
 * attention that the position scheme describes, W_o. Remembers hidden states (the wiring does) or
 * keys and values (here). */
#include "sub_attention.h"
#include "parts/linear.h"

struct attn attn_of_config(const struct config *c, int B, int L, int M)
{
    const ptrdiff_t row = (ptrdiff_t)c->H * c->dh, kv_row = (ptrdiff_t)c->kv_heads * c->dh;

    return (struct attn){
        .B = B,
        .H = c->H,
        .Hkv = c->kv_heads,
        .L = L,
        .M = M,
        .dh = c->dh,
        .window = c->window,
        .causal = c->causal,
        .scale = c->scale,
        .q_at = {.batch = L * row, .row = row},
        .k_at = {.batch = (M + L) * kv_row, .row = kv_row},
        .v_at = {.batch = (M + L) * kv_row, .row = kv_row},
        .o_at = {.batch = L * row, .row = row},
    };
}

/* ---- declaration and binding --------------------------------------------------------------- */

static void attention_params(const struct config *c, const char *prefix, const char *ff,
                             struct params *p)
{
    const int HD = c->H * c->dh, kv_width = c->kv_heads * c->dh;

    (void)ff;
    params_matrix(p, HD, c->D, prefix, "attn.q.weight");
    params_matrix(p, kv_width, c->D, prefix, "attn.k.weight");
    params_matrix(p, kv_width, c->D, prefix, "attn.v.weight");
    params_matrix(p, c->D, HD, prefix, "attn.o.weight");
    if (c->attn_bias) {
        params_vector(p, INIT_ZERO, 0, HD, prefix, "attn.q.bias");
        params_vector(p, INIT_ZERO, 0, kv_width, prefix, "attn.k.bias");
        params_vector(p, INIT_ZERO, 0, kv_width, prefix, "attn.v.bias");
        params_vector(p, INIT_ZERO, 0, c->D, prefix, "attn.o.bias");
    }
    if (c->pos->layer_params)
        c->pos->layer_params(c, prefix, p);
}

static const struct param *bias(const struct sub *s, int which)
{
    return s->c->attn_bias ? &s->own[ATTN_WEIGHTS + which] : NULL;
}

static int attention_keeps(const struct config *c, enum mem_kind mem, int M)
{
    (void)c;
    return mem == MEM_HIDDEN ? M : -1;
}

static enum status attention_bind(struct sub *s, const struct engine *g, struct extent max,
                                  struct arena *a, struct err *e)
{
    const struct config *c = s->c;
    struct attention *t = &s->of.attention;
    const int kv_width = c->kv_heads * c->dh;

    *t = (struct attention){.pos = s->own + (c->attn_bias ? 2 : 1) * ATTN_WEIGHTS};
    if (s->mem == MEM_KV) {
        cache_bind(&t->keys, max.B, max.L, max.M, kv_width, a);
        cache_bind(&t->values, max.B, max.L, max.M, kv_width, a);
    }
    t->lowered = attn_of_config(c, max.B, max.L, max.M);
    if (c->pos->reserve)
        c->pos->reserve(c, s->model, t->pos, max.M + max.L, a, &t->lowered);
    return engine_attn(g, &t->lowered, &t->impl, e);
}

static enum status attention_can_grad(const struct sub *s, const struct engine *g, struct err *e)
{
    return engine_attn_backward(g, s->of.attention.impl, e);
}

static void attention_arrays(const struct sub *s, struct extent max, struct array out[SUB_ARRAYS])
{
    const size_t HD = (size_t)s->c->H * (size_t)s->c->dh;
    const size_t kv_width = (size_t)s->c->kv_heads * (size_t)s->c->dh;
    const size_t q = (size_t)max.B * (size_t)max.L * HD;
    const size_t k = s->mem == MEM_KV ? 0 : (size_t)max.B * (size_t)(max.L + max.M) * kv_width;
    const size_t lse = (size_t)max.B * (size_t)max.L * (size_t)s->c->H;

    out[AT_Q] = out[AT_O] = (struct array){q, q, false, PART_ACTIVATIONS};
    out[AT_K] = out[AT_V] = (struct array){k, k, false, PART_ACTIVATIONS};
    out[AT_LSE] = (struct array){0, lse, false, PART_ACTIVATIONS};
}

static void attention_arrays_grad(const struct sub *s, struct extent max,
                                  struct array out[SUB_ARRAYS])
{
    const struct pos *pos = s->c->pos;
    const int K = max.L + max.M;

    attention_arrays(s, max, out);
    for (int i = AT_Q; i <= AT_O; i++) {
        out[i].n = 0;
        out[i].shared = true;
    }
    out[AT_D_TABLES] =
        (struct array){0, pos->n_tables_grad ? pos->n_tables_grad(s->c, K) : 0, true, PART_REL_POS};
}

static struct attn_need attention_scratch(const struct sub *s, int threads, bool backward)
{
    const struct attention *t = &s->of.attention;

    return backward ? t->impl->need_backward(&t->lowered, threads)
                    : t->impl->need(&t->lowered, threads);
}

static void attention_lower(const struct engine *g, struct sub *s, const float *codes)
{
    struct attention *t = &s->of.attention;

    t->codes = codes;
    if (s->c->pos->lower)
        s->c->pos->lower(g, s->c, s->model, t->pos, codes, &t->lowered);
}

/* ---- forward ------------------------------------------------------------------------------ */

static void attention_enter(const struct sub *s, float *x, int B, int L)
{
    if (!s->c->pos->enter)
        return;
    CHECK(s->mem != MEM_HIDDEN); /* memory would have to be kept without the added positions */
    s->c->pos->enter(s->c, s->of.attention.pos, x, B, L);
}

static void attention_enter_grad(const struct sub *s, const float *d_x, int B, int L)
{
    if (s->c->pos->enter_grad)
        s->c->pos->enter_grad(s->c, s->of.attention.pos, d_x, B, L);
}

/* y = x W^T (+ bias) for `rows` rows of each of B sequences: one product where both are contiguous,
 * one per sequence where they lie in a cache. */
static void linear(const struct engine *g, struct seq_rows y, struct seq_rows x, int B, int rows,
                   const struct param *w, const struct param *b)
{
    const int out = w->shape[0], in = w->shape[1];

    if (x.stride == (ptrdiff_t)rows * in && y.stride == (ptrdiff_t)rows * out) {
        rows *= B;
        B = 1;
    }
    for (int i = 0; i < B; i++) {
        float *dst = y.at + i * y.stride;
        linear_forward(g, w, b, dst, x.at + i * x.stride, rows, (struct act){.y = dst});
    }
}

/* Where the keys of `rows` source rows go when they are kept: straight behind the cached ones. */
static struct seq_rows behind(struct cache *cache, int rows)
{
    cache_reserve(cache, rows);
    return (struct seq_rows){cache_rows(cache, 0) + (ptrdiff_t)cache->M * cache->n,
                             cache_stride(cache)};
}

int64_t attention_base(const struct sub *s)
{
    return cache_base(s->mem == MEM_KV ? &s->of.attention.keys : &s->memory);
}

void attention_rotate(const struct engine *g, const struct sub *s, struct seq_rows x, int B,
                      int rows, int heads, int64_t position, bool back)
{
    if (s->c->pos->rotate)
        s->c->pos->rotate(g, s->c, s->of.attention.codes,
                          &(struct rotation){.x = x.at,
                                             .stride = x.stride,
                                             .B = B,
                                             .rows = rows,
                                             .heads = heads,
                                             .position = position,
                                             .back = back});
}

/* The rows end at position `end` of the stream. */
static void project_kv(const struct engine *g, const struct sub *s, struct seq_rows k,
                       struct seq_rows v, struct sub_input from, int64_t end)
{
    const int rows = from.M + from.L;

    linear(g, k, from.at, from.B, rows, &s->own[ATTN_K], bias(s, ATTN_K));
    linear(g, v, from.at, from.B, rows, &s->own[ATTN_V], bias(s, ATTN_V));
    attention_rotate(g, s, k, from.B, rows, s->c->kv_heads, end - rows, false);
}

int attention_memory(const struct sub *s)
{
    return s->mem == MEM_KV ? s->of.attention.keys.M : s->memory.M;
}

struct attn attention_operands(const struct sub *s, const struct work *w, int B, int L)
{
    const struct attention *t = &s->of.attention;
    const bool kv = s->mem == MEM_KV;
    const ptrdiff_t HD = (ptrdiff_t)s->c->H * s->c->dh;
    const ptrdiff_t kv_width = (ptrdiff_t)s->c->kv_heads * s->c->dh;
    const int M = attention_memory(s);
    struct attn a = t->lowered;

    attn_resize(&a, L, M);
    a.B = B;
    a.q = w->own[AT_Q];
    a.o = w->own[AT_O];
    a.lse = w->own[AT_LSE];
    a.base = attention_base(s);
    a.q_at.batch = a.o_at.batch = L * HD;
    a.k = kv ? cache_rows(&t->keys, 0) : w->own[AT_K];
    a.v = kv ? cache_rows(&t->values, 0) : w->own[AT_V];
    a.k_at.batch = a.v_at.batch = kv ? cache_stride(&t->keys) : (M + L) * kv_width;
    return a;
}

struct attn attention_project(const struct engine *g, struct sub *s, struct work *w,
                              struct sub_input from)
{
    const struct config *c = s->c;
    struct attention *t = &s->of.attention;
    const ptrdiff_t HD = (ptrdiff_t)c->H * c->dh, kv_width = (ptrdiff_t)c->kv_heads * c->dh;
    const int64_t end = attention_base(s) + attention_memory(s) + from.L;
    const bool kv = s->mem == MEM_KV;
    const int K = from.M + from.L; /* rows whose keys are projected now */
    const struct seq_rows fresh = {from.at.at + (ptrdiff_t)from.M * c->D, from.at.stride};
    const struct seq_rows q = {w->own[AT_Q], from.L * HD};
    const struct seq_rows k =
        kv ? behind(&t->keys, K) : (struct seq_rows){w->own[AT_K], K * kv_width};
    const struct seq_rows v =
        kv ? behind(&t->values, K) : (struct seq_rows){w->own[AT_V], K * kv_width};

    linear(g, q, fresh, from.B, from.L, &s->own[ATTN_Q], bias(s, ATTN_Q));
    attention_rotate(g, s, q, from.B, from.L, c->H, end - from.L, false);
    project_kv(g, s, k, v, from, end);
    return attention_operands(s, w, from.B, from.L);
}

void attention_unproject(const struct engine *g, const struct sub *s, struct work *w, int rows,
                         struct act leave)
{
    linear_forward(g, &s->own[ATTN_O], bias(s, ATTN_O), w->y, w->own[AT_O], rows, leave);
}

static void attention_forward(const struct engine *g, struct sub *s, struct work *w,
                              struct sub_input from, struct act leave)
{
    const struct attn a = attention_project(g, s, w, from);

    s->of.attention.impl->forward(g, &a, w->scratch);
    attention_unproject(g, s, w, from.B * from.L, leave);
}

/* ---- memory ------------------------------------------------------------------------------- */

static void attention_remember(const struct engine *g, struct sub *s, struct sub_input from)
{
    struct attention *t = &s->of.attention;

    CHECK(s->mem == MEM_KV);
    project_kv(g, s, behind(&t->keys, from.L), behind(&t->values, from.L), from,
               attention_base(s) + attention_memory(s) + from.L);
}

static void attention_commit(struct sub *s, int L)
{
    if (s->mem == MEM_KV) {
        cache_commit(&s->of.attention.keys, L);
        cache_commit(&s->of.attention.values, L);
    }
}

static void attention_forget(struct sub *s)
{
    cache_clear(&s->of.attention.keys);
    cache_clear(&s->of.attention.values);
}

/* ---- cost --------------------------------------------------------------------------------- */

static double attention_flop(const struct sub *s, int B, int L, int M)
{
    const struct config *c = s->c;
    const double HD = (double)c->H * c->dh, kv_width = (double)c->kv_heads * c->dh;
    const double rows = (double)B * L;
    const double projected = s->mem == MEM_HIDDEN ? (double)B * (M + L) : rows;
    struct attn a = s->of.attention.lowered;

    attn_resize(&a, L, M);
    a.B = B;
    return attn_flop(&a) + 4 * rows * c->D * HD /* W_q, W_o */
           + 4 * projected * c->D * kv_width /* W_k, W_v */;
}

const struct sub_kind sub_attention = {
    .name = "attention",
    .mixes = true,
    .place = DROP_ATTENTION,
    .params = attention_params,
    .keeps = attention_keeps,
    .bind = attention_bind,
    .can_grad = attention_can_grad,
    .arrays = attention_arrays,
    .arrays_grad = attention_arrays_grad,
    .scratch = attention_scratch,
    .lower = attention_lower,
    .enter = attention_enter,
    .enter_grad = attention_enter_grad,
    .forward = attention_forward,
    .backward = attention_backward,
    .remember = attention_remember,
    .commit = attention_commit,
    .forget = attention_forget,
    .flop = attention_flop,
    .grad_flop = attention_grad_flop,
};

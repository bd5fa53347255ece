/* SPDX-License-Identifier: MIT
 *
 * Attention to the one memory of a model (model/lm/feedback.h) as a kind of sub-layer: it has queries
 * and outputs, and keys and values of its own only where layers do not share them. It runs one
 * token of each sequence at a time. Distances begin at 1, where the core's begin at 0: a bias that
 * falls by the same step is the same softmax, and windows and tables (pos_recent.c) are shifted. */
#include "feedback.h"
#include "variants/model/attention/sublayer_attention.h"
#include "variants/model/sublayer/sublayer_seen.h"
#include "variants/parts/linear.h"

enum { F_Q, F_O, F_LSE }; /* [B,H,dh] [B,H,dh] [B,H] */
enum { F_D_Q, F_D_O, F_D_K, F_D_V, F_D_TABLES };

static void feedback_own(const struct sublayer *s, const char *prefix, const char *inner,
                         struct params *p)
{
    const struct config *const c = s->c;

    params_map(p, config_q_width(c), c->D, prefix, "attn.q.weight");
    for (int i = 0; i < 2 && !c->feedback.shared; i++)
        params_map(p, config_kv_width(c), c->D, prefix, i ? "attn.v.weight" : "attn.k.weight");
    params_residual(p, params_map(p, c->D, config_q_width(c), prefix, "attn.o.weight"));
    if (c->pos->layer_params)
        c->pos->layer_params(c, prefix, p);
}

static const struct param *out_weight(const struct sublayer *s)
{
    return &s->weights[s->c->feedback.shared ? 1 : ATTN_O];
}

static int keeps_none(const struct sublayer *s, enum mem_kind mem, int M) { return -1; }

/* All of the model's are counted with the first. */
static size_t feedback_caches(const struct sublayer *s, int M)
{
    const int row = s->nth ? 0 : 2 * config_kv_width(s->c) * feedback_stores(s->c);

    return (size_t)M * (size_t)row;
}

static enum status bind(struct sublayer *s, const struct engine *g, struct extent max,
                        struct arena *a, struct err *e)
{
    struct attention *const t = &s->state.attention;

    *t = (struct attention){.pos = out_weight(s) + 1, .reach = max.M + max.L};
    t->prepared = attn_of_config(s->c, max.B, max.L, max.M);
    t->prepared.window = config_window(s->c, s->layer);
    const struct term_params p = attention_term_params(s);
    terms_reserve(s->c, &p, s->layer, max.L, t->reach, a, &t->prepared);
    const struct attn copy = attention_for_impl(s);
    return engine_attn(g, &copy, &t->impl, e);
}

static void arrays(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    const size_t q = (size_t)max.B * (size_t)config_q_width(s->c);
    const size_t lse = (size_t)max.B * (size_t)s->c->H;

    out[F_Q] = out[F_O] = (struct array){q, q, false, PART_ACTIVATIONS};
    out[F_LSE] = (struct array){0, lse, false, PART_ACTIVATIONS};
}

static void arrays_grad(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    const struct attention *const t = &s->state.attention;
    const size_t q = (size_t)max.B * (size_t)config_q_width(s->c);
    const int rows = max.M + max.L;
    const size_t kv = (size_t)max.B * (size_t)rows * (size_t)config_kv_width(s->c);

    out[F_D_Q] = out[F_D_O] = (struct array){0, q, true, PART_ACTIVATIONS};
    out[F_D_K] = out[F_D_V] = (struct array){0, kv, true, PART_ACTIVATIONS};
    out[F_D_TABLES] = (struct array){0, terms_n_tables_grad(s->c, t->reach), true, PART_REL_POS};
}

/* Backward runs forward again, in the room of both. */
static struct attn_need scratch(const struct sublayer *s, const struct engine *g, bool backward)
{
    const struct attn_impl *const impl = s->state.attention.impl;
    const struct attn copy = attention_for_impl(s);
    const struct attn_need forward = impl->need(&copy, g->threads);

    if (!backward)
        return forward;
    struct attn_need need = impl->need_backward(&copy, g->threads);
    const size_t other = forward.scores_bytes + forward.scratch_bytes;
    const size_t have = need.scores_bytes + need.scratch_bytes;
    need.scratch_bytes += other > have ? other - have : 0;
    return need;
}

static void build_tables(const struct engine *g, struct sublayer *s, const float *pos_encoding)
{
    struct attention *const t = &s->state.attention;
    const struct term_params p = attention_term_params(s);

    t->pos_encoding = pos_encoding;
    terms_build_tables(g, s->c, &p, pos_encoding, &t->prepared);
}

static struct attn call_of(const struct sublayer *s, const struct work *w, int B)
{
    const struct attention *const t = &s->state.attention;
    const struct feedback *const model = t->feedback;
    const int store = feedback_store(s->c, s->layer);
    struct attn a = t->prepared;

    attn_resize(&a, 1, t->seen - 1);
    a.B = B;
    a.q = w->array[F_Q];
    a.o = w->array[F_O];
    a.lse = w->array[F_LSE];
    a.k = cache_rows(&model->keys[store], 0);
    a.v = cache_rows(&model->values[store], 0);
    a.q_at.batch = a.q_at.row;
    a.o_at.batch = a.o_at.row;
    a.k_at.batch = a.v_at.batch = cache_stride(model->keys);
    return a;
}

static void forward(const struct engine *g, struct sublayer *s, struct work *w,
                    struct sublayer_input from, struct act epilogue)
{
    const struct attention *const t = &s->state.attention;
    const int B = from.B;

    CHECK(t->feedback && from.L == 1 && from.M == 0);
    if (t->seen == 0) { /* f is 0 */
        memset(w->y, 0, sizeof(float) * (size_t)B * (size_t)s->c->D);
        linear_epilogue(g, epilogue, w->y, B, s->c->D);
        return;
    }
    linear_forward(g, &s->weights[ATTN_Q], NULL, w->array[F_Q], from.at.at, B,
                   (struct act){.y = w->array[F_Q]});
    const struct attn a = call_of(s, w, B);
    sublayer_seen(g, s, 0, t->seen - t->feedback->past, &a);
    t->impl->forward(g, &a, t->again ? w->d_scratch : w->scratch);
    linear_forward(g, out_weight(s), NULL, w->y, w->array[F_O], B, epilogue);
}

/* Gradients of the first `seen` keys or values are added to the model's. The core's have the rows
 * of the cache, this array fewer. */
static void gather(const struct sublayer *s, float *to, const float *from, int B, ptrdiff_t stride)
{
    const size_t n = (size_t)s->state.attention.seen * (size_t)config_kv_width(s->c);

    for (int b = 0; b < B; b++)
        add_times(to + b * stride, from + b * stride, 1, n, 1);
}

static void backward(const struct engine *g, struct sublayer *s, const struct work *w,
                     struct sublayer_input from, float *d_in, const float *d_y, int skip)
{
    const struct attention *const t = &s->state.attention;
    const struct feedback *const model = t->feedback;
    const struct term_params p = attention_term_params(s);
    const size_t store = (size_t)feedback_store(s->c, s->layer);
    const size_t floats = (size_t)model->max.B * (size_t)cache_stride(model->keys);
    const int B = from.B;

    if (t->seen == 0) {
        memset(d_in, 0, sizeof(float) * (size_t)B * (size_t)s->c->D);
        return;
    }
    struct attn_grad d = {.d_o = w->d_array[F_D_O],
                          .d_q = w->d_array[F_D_Q],
                          .d_k = w->d_array[F_D_K],
                          .d_v = w->d_array[F_D_V]};
    struct attn a = call_of(s, w, B);
    linear_backward(g, out_weight(s), NULL, w->d_array[F_D_O], d_y, w->array[F_O], B, 0);
    terms_grad(s->c, &p, t->reach, &a, w->d_array[F_D_TABLES], &d);
    t->impl->backward(g, &a, &d, w->d_scratch);
    terms_build_tables_grad(g, s->c, &p, w->pos_encoding, &a, &d);
    gather(s, model->d_keys + store * floats, d.d_k, B, a.k_at.batch);
    gather(s, model->d_values + store * floats, d.d_v, B, a.v_at.batch);
    linear_backward(g, &s->weights[ATTN_Q], NULL, d_in, d.d_q, from.at.at, B, 0);
}

/* ---- memory: the first sub-layer's is the model's ------------------------------------------- */

static void take(const struct engine *g, struct sublayer *s, const float *x, int B, int rows)
{
    if (s->nth == 0)
        feedback_remember(s->state.attention.feedback, g, x, B, rows);
}

static void commit(struct sublayer *s, int L)
{
    if (s->nth == 0)
        feedback_commit(s->state.attention.feedback, L);
}

static void forget(struct sublayer *s)
{
    if (s->nth == 0)
        feedback_forget(s->state.attention.feedback);
}

/* ---- cost ----------------------------------------------------------------------------------- */

static double core_flop(const struct sublayer *s, int B, int L, int M, bool back)
{
    struct attn a = s->state.attention.prepared;
    double flop = 0;

    a.B = B;
    for (int t = 0; t < L; t++)
        if (M + t > 0) {
            struct attn one = a;
            attn_resize(&one, 1, M + t - 1);
            flop += back ? attn_grad_flop(&one) : attn_flop(&one);
        }
    return flop;
}

static double maps_flop(const struct sublayer *s, int B, int L, int M)
{
    const struct config *const c = s->c;
    const double rows = (double)B * L, all = s->mem == MEM_HIDDEN ? rows + (double)B * M : rows;
    const bool stores = s->nth == 0 || !c->feedback.shared;

    return 4 * rows * c->D * config_q_width(c) + (stores ? 4 * all * c->D * config_kv_width(c) : 0);
}

static struct sublayer_cost cost(const struct sublayer *s, int B, int L, int M)
{
    return (struct sublayer_cost){core_flop(s, B, L, M, false), core_flop(s, B, L, M, true),
                                  maps_flop(s, B, L, M)};
}

const struct sublayer_kind sublayer_feedback = {
    .name = "feedback",
    .memory = "mem",
    .mixes = true,
    .attends = true,
    .place = DROP_ATTENTION,
    .params = feedback_own,
    .keeps = keeps_none,
    .caches = feedback_caches,
    .bind = bind,
    .arrays = arrays,
    .arrays_grad = arrays_grad,
    .scratch = scratch,
    .build_tables = build_tables,
    .forward = forward,
    .backward = backward,
    .take = take,
    .commit = commit,
    .forget = forget,
    .cost = cost,
};

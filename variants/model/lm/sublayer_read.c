/* SPDX-License-Identifier: MIT
 *
 * Cross attention (cross.h) as a kind of sub-layer: queries from the stream, keys and values from
 * the rows of a context that its owner hands over (struct reading): slots, or what an encoder left.
 * Without an order, positions and a memory of its own. With `self` the context is the sub-layer's
 * own source rows: attention in both directions over the rows that count. */
#include "slots.h"
#include "variants/model/attention/cross.h"
#include "variants/model/attention/sublayer_attention.h"
#include "variants/model/sublayer/sublayer_seen.h"
#include "variants/parts/linear.h"

enum { X_Q, X_K, X_V, X_O, X_LSE, X_D_CTX = X_LSE };

static void read_params(const struct sublayer *s, const char *prefix, const char *inner,
                        struct params *p)
{
    static const char *const names[ATTN_WEIGHTS][2] = {{"q.weight", "q.bias"},
                                                       {"k.weight", "k.bias"},
                                                       {"v.weight", "v.bias"},
                                                       {"o.weight", "o.bias"}};
    const struct config *const c = s->c;
    const int q = config_q_width(c), kv = config_kv_width(c);
    const int rows[ATTN_WEIGHTS] = {q, kv, kv, c->D};

    for (int i = 0; i < ATTN_WEIGHTS; i++)
        params_map(p, rows[i], i == ATTN_O ? q : c->D, inner, names[i][0]);
    params_residual(p, p->n - 1);
    for (int i = 0; i < ATTN_WEIGHTS && c->attn_bias; i++)
        params_vector(p, INIT_ZERO, 0, rows[i], inner, names[i][1]);
}

/* A call of B sequences of L rows; `array` are the arrays of forward. */
static struct cross call_of(const struct sublayer *s, int B, int L, float *const array[SUB_ARRAYS])
{
    const struct reading *const r = &s->reading;

    return (struct cross){.c = s->c,
                          .B = B,
                          .L = L,
                          .S = r->self ? L : r->S,
                          .ctx_width = s->c->D,
                          .weights = s->weights,
                          .seen = r->seen,
                          .impl = r->impl,
                          .q = array[X_Q],
                          .k = array[X_K],
                          .v = array[X_V],
                          .o = array[X_O],
                          .lse = array[X_LSE]};
}

static float *const none[SUB_ARRAYS];

static enum status read_bind(struct sublayer *s, const struct engine *g, struct extent max,
                             struct arena *a, struct err *e)
{
    s->reading.max = max;
    const struct cross t = call_of(s, max.B, max.L, none);
    const struct attn asked = cross_attn(&t);
    return engine_attn(g, &asked, &s->reading.impl, e);
}

static void sizes(const struct sublayer *s, struct extent max, bool backward,
                  struct array out[SUB_ARRAYS])
{
    const size_t B = (size_t)max.B, L = (size_t)max.L;
    const size_t S = s->reading.self ? L : (size_t)s->reading.S;
    const size_t q = B * L * (size_t)config_q_width(s->c);
    const size_t kv = B * S * (size_t)config_kv_width(s->c);

    out[X_Q] = out[X_O] = (struct array){backward ? 0 : q, q, backward, PART_ACTIVATIONS};
    out[X_K] = out[X_V] = (struct array){backward ? 0 : kv, kv, backward, PART_ACTIVATIONS};
    out[X_LSE] = (struct array){0, backward ? B * S * (size_t)s->c->D : B * L * (size_t)s->c->H,
                                backward, PART_ACTIVATIONS};
}

static void read_arrays(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    sizes(s, max, false, out);
}

static void read_arrays_grad(const struct sublayer *s, struct extent max,
                             struct array out[SUB_ARRAYS])
{
    sizes(s, max, true, out);
}

struct attn sublayer_read_attn(const struct sublayer *s)
{
    const struct cross t = call_of(s, s->reading.max.B, s->reading.max.L, none);

    return cross_attn(&t);
}

/* The most that any call of the core needs. */
static struct attn_need read_scratch(const struct sublayer *s, const struct engine *g,
                                     bool backward)
{
    const struct cross t = call_of(s, s->reading.max.B, s->reading.max.L, none);
    struct attn_need most = {0};

    for (int i = -1; i < cross_calls(&t); i++) {
        const struct attn a = i < 0 ? cross_attn(&t) : cross_call(&t, i);
        most = larger_need((backward ? t.impl->need_backward : t.impl->need)(&a, g->threads), most);
    }
    return most;
}

static const float *context(const struct sublayer *s, struct sublayer_input from)
{
    return s->reading.self ? from.at.at : s->reading.ctx;
}

static void read_forward(const struct engine *g, struct sublayer *s, struct work *w,
                         struct sublayer_input from, struct act epilogue)
{
    struct cross t = call_of(s, from.B, from.L, w->array);

    CHECK(from.M == 0 && context(s, from));
    t.scratch = w->scratch;
    cross_context(g, &t, context(s, from));
    cross_forward(g, &t, w->y, from.at.at);
    const struct attn a = cross_call(&t, 0);
    sublayer_seen(g, s, 0, 0, &a);
    linear_epilogue(g, epilogue, w->y, from.B * from.L, s->c->D);
}

static void read_backward(const struct engine *g, struct sublayer *s, const struct work *w,
                          struct sublayer_input from, float *d_in, const float *d_y, int skip)
{
    struct cross t = call_of(s, from.B, from.L, w->array);
    float *const d_ctx = w->d_array[X_D_CTX], *const to = s->reading.self ? d_in : s->reading.d_ctx;
    const int rows = from.B * t.S;

    t.d_q = w->d_array[X_Q];
    t.d_k = w->d_array[X_K];
    t.d_v = w->d_array[X_V];
    t.d_o = w->d_array[X_O];
    t.d_scratch = w->d_scratch;
    cross_backward(g, &t, d_in, d_ctx, d_y, from.at.at, context(s, from));
    if (to)
        rows_add(g, to, d_ctx, rows, s->c->D);
}

/* What is carried is carried by the first that reads it. */
static bool read_carries(const struct sublayer *s, int i, struct carried *out)
{
    return s->nth == 0 && s->reading.slots && slots_carries(s->reading.slots, i, out);
}

static struct sublayer_cost read_cost(const struct sublayer *s, int B, int L, int M)
{
    struct cross t = call_of(s, B, L, none);

    t.seen = NULL;
    return (struct sublayer_cost){cross_context_flop(&t) + cross_flop(&t), cross_grad_flop(&t), 0};
}

const struct sublayer_kind sublayer_read = {
    .name = "read",
    .reads = true,
    .mixes = true,
    .place = DROP_READ,
    .params = read_params,
    .bind = read_bind,
    .arrays = read_arrays,
    .arrays_grad = read_arrays_grad,
    .scratch = read_scratch,
    .forward = read_forward,
    .backward = read_backward,
    .carries = read_carries,
    .cost = read_cost,
};

/* SPDX-License-Identifier: MIT
 *
 * Synthesized scores as a kind of sub-layer (variants/synthesizer.c): attention over values only,
 * whose scores are computed from the query rows (dense) or are a parameter (random), and enter as
 * the term `add`. It is no list of steps: bind asks the backend for an implementation of attention,
 * and what that needs and keeps (room for scores, log-sum-exp) goes by it. */
#include "sublayer.h"
#include "sublayer_seen.h"
#include "variants/model/attention/sublayer_attention.h"
#include "variants/parts/linear.h"
#include "variants/parts/parts.h"

#include <string.h>

/* Parameters: W_v and W_o, their biases with attn_bias, then those of the scores. */
enum { SYN_V, SYN_O, SYN_WEIGHTS };
enum { DENSE_1, DENSE_1_BIAS, DENSE_2, DENSE_2_BIAS };

/* Arrays: values [B,L,Hkv,dh], outputs [B,L,H,dh], log-sum-exp [B,H,L]; for dense the hidden units
 * [B,L,H,f] and the scores [B,H,L,L]. Those of gradients have the same shapes. */
enum { SY_V, SY_O, SY_LSE, SY_HIDDEN, SY_SCORES };

static bool dense(const struct config *c) { return c->mixer == &mixer_synth_dense; }

static int places(const struct config *c) { return c->max_pos ? c->max_pos : c->max_seq; }

struct synthesizer {
    int inner; /* hidden units of a head; 0 = dh */
};

static const struct choice synthesizer_choices[] = {
    ROW_INT(struct synthesizer, inner, "syn_inner", 0, 1 << 20,
            "hidden units of a head; 0 = its width", .absent = "0", .applies = dense, SETTING),
    {0},
};

const struct part_numbers synthesizer_numbers = {synthesizer_choices,
                                                 NUMBERS_SIZE(struct synthesizer), NULL, NULL};

static int hidden(const struct config *c)
{
    const struct synthesizer *const numbers = config_numbers(c, SLOT_MIXER);

    return numbers->inner ? numbers->inner : c->dh;
}

static void syn_params(const struct sublayer *s, const char *prefix, const char *inner,
                       struct params *p)
{
    const struct config *const c = s->c;

    const int HD = c->H * c->dh, kv_width = c->kv_heads * c->dh, T = max_int(1, places(c));

    (void)inner;
    params_map(p, kv_width, c->D, prefix, "attn.v.weight");
    params_residual(p, params_map(p, c->D, HD, prefix, "attn.o.weight"));
    if (c->attn_bias) {
        params_vector(p, INIT_ZERO, 0, kv_width, prefix, "attn.v.bias");
        params_vector(p, INIT_ZERO, 0, c->D, prefix, "attn.o.bias");
    }
    if (!dense(c)) {
        params_add(p, INIT_NORMAL, 1, 3, (const int[]){c->H, T, T}, "%sattn.syn.table", prefix);
        return;
    }
    params_map(p, c->H * hidden(c), c->D, prefix, "attn.syn.1.weight");
    params_vector(p, INIT_ZERO, 0, c->H * hidden(c), prefix, "attn.syn.1.bias");
    params_wide(p, params_add(p, INIT_LINEAR, 0, 3, (const int[]){c->H, T, hidden(c)},
                              "%sattn.syn.2.weight", prefix));
    params_add(p, INIT_ZERO, 0, 2, (const int[]){c->H, T}, "%sattn.syn.2.bias", prefix);
}

static const struct param *bias(const struct sublayer *s, int which)
{
    return s->c->attn_bias ? &s->weights[SYN_WEIGHTS + which] : NULL;
}

static const struct param *of_scores(const struct sublayer *s)
{
    return s->weights + (s->c->attn_bias ? 2 : 1) * SYN_WEIGHTS;
}

/* ---- binding ------------------------------------------------------------------------------ */

/* The attention of B sequences of L rows, without the operands of a call. */
static struct attn core(const struct sublayer *s, int B, int L, const float *scores)
{
    const struct config *c = s->c;
    const ptrdiff_t T = places(c), pairs = (ptrdiff_t)L * L;
    struct attn a = attn_of_config(c, B, L, 0);

    a.no_content = true;
    a.add = dense(c) ? (struct dense){scores, c->H * pairs, pairs, L}
                     : (struct dense){of_scores(s)->data, 0, T * T, T};
    return a;
}

static enum status syn_bind(struct sublayer *s, const struct engine *g, struct extent max,
                            struct arena *a, struct err *e)
{
    static const float something = 0;
    struct attention *t = &s->state.attention;

    (void)a;
    if (max.L > places(s->c))
        return fail(e, E_UNSUPPORTED,
                    "%s: a window of %d, scores for %d positions  -> use a shorter window",
                    s->c->variant->name, max.L, places(s->c));
    *t = (struct attention){.prepared = core(s, max.B, max.L, &something)};
    return engine_attn(g, &t->prepared, &t->impl, e);
}

static void syn_arrays(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    const struct config *c = s->c;
    const size_t rows = (size_t)max.B * (size_t)max.L, H = (size_t)c->H;
    const size_t v = rows * (size_t)(c->kv_heads * c->dh), o = rows * H * (size_t)c->dh;
    const size_t units = dense(c) ? rows * H * (size_t)hidden(c) : 0;
    const size_t scores = dense(c) ? rows * H * (size_t)max.L : 0;

    out[SY_V] = (struct array){v, v, false, PART_ACTIVATIONS};
    out[SY_O] = (struct array){o, o, false, PART_ACTIVATIONS};
    out[SY_LSE] = (struct array){0, rows * H, false, PART_ACTIVATIONS};
    out[SY_HIDDEN] = (struct array){units, units, false, PART_ACTIVATIONS};
    out[SY_SCORES] = (struct array){scores, scores, false, PART_SCORES};
}

static void syn_arrays_grad(const struct sublayer *s, struct extent max,
                            struct array out[SUB_ARRAYS])
{
    syn_arrays(s, max, out);
    out[SY_LSE].n_kept = 0;
    for (int i = SY_V; i <= SY_SCORES; i++) {
        out[i].n = 0;
        out[i].shared = true;
    }
}

static struct attn_need syn_scratch(const struct sublayer *s, const struct engine *g, bool backward)
{
    const struct attention *t = &s->state.attention;

    return backward ? t->impl->need_backward(&t->prepared, g->threads)
                    : t->impl->need(&t->prepared, g->threads);
}

/* ---- forward ------------------------------------------------------------------------------ */

/* Hidden units of head h of sequence b, [L,f] of rows H*f apart. */
static float *units_of(const struct config *c, float *all, int b, int h, int L)
{
    return all + ((ptrdiff_t)b * L * c->H + h) * hidden(c);
}

/* Rows of W2 or b2 of head h; `width` floats each. */
static ptrdiff_t head_at(const struct config *c, int h, int width)
{
    return (ptrdiff_t)h * places(c) * width;
}

static void make_scores(const struct engine *g, const struct sublayer *s, const struct work *w,
                        const float *x, int B, int L)
{
    const struct config *c = s->c;
    const struct param *const W = of_scores(s);
    const int f = hidden(c);

    linear_forward(g, &W[DENSE_1], &W[DENSE_1_BIAS], w->array[SY_HIDDEN], x, B * L,
                   (struct act){.kind = ACT_RELU, .y = w->array[SY_HIDDEN]});
    for (int at = 0; at < B * c->H; at++) {
        const int b = at / c->H, h = at % c->H;
        float *const to = w->array[SY_SCORES] + (ptrdiff_t)at * L * L;
        for (int i = 0; i < L; i++)
            memcpy(to + (ptrdiff_t)i * L, W[DENSE_2_BIAS].data + head_at(c, h, 1),
                   sizeof(float) * (size_t)L);
        mm(g, NT, L, L, f, 1, units_of(c, w->array[SY_HIDDEN], b, h, L), (ptrdiff_t)c->H * f,
           W[DENSE_2].data + head_at(c, h, f), f, 1, to, L);
    }
}

static struct attn syn_operands(const struct sublayer *s, const struct work *w, int B, int L)
{
    struct attn a = core(s, B, L, w->array[SY_SCORES]);

    a.v = w->array[SY_V];
    a.o = w->array[SY_O];
    a.lse = w->array[SY_LSE];
    return a;
}

static void syn_forward(const struct engine *g, struct sublayer *s, struct work *w,
                        struct sublayer_input from, struct act epilogue)
{
    const int B = from.B, L = from.L;

    CHECK(from.M == 0 && L <= places(s->c));
    linear_forward(g, &s->weights[SYN_V], bias(s, SYN_V), w->array[SY_V], from.at.at, B * L,
                   (struct act){.y = w->array[SY_V]});
    if (dense(s->c))
        make_scores(g, s, w, from.at.at, B, L);
    const struct attn a = syn_operands(s, w, B, L);
    sublayer_attend(g, s, w, 0, 0, &a);
    linear_forward(g, &s->weights[SYN_O], bias(s, SYN_O), w->y, w->array[SY_O], B * L, epilogue);
}

/* ---- backward ----------------------------------------------------------------------------- */

/* From the gradient of the scores [B,H,L,L] to that of the hidden units; accumulates W2's and
 * b2's. */
static void scores_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                        int B, int L)
{
    const struct config *c = s->c;
    const struct param *const W = of_scores(s);
    const int f = hidden(c);
    const ptrdiff_t row = (ptrdiff_t)c->H * f;

    for (int at = 0; at < B * c->H; at++) {
        const int b = at / c->H, h = at % c->H;
        const float *const d = w->d_array[SY_SCORES] + (ptrdiff_t)at * L * L;
        float *const d_bias = W[DENSE_2_BIAS].grad + head_at(c, h, 1);
        mm(g, NN, L, f, L, 1, d, L, W[DENSE_2].data + head_at(c, h, f), f, 0,
           units_of(c, w->d_array[SY_HIDDEN], b, h, L), row);
        mm(g, TN, L, f, L, 1, d, L, units_of(c, w->array[SY_HIDDEN], b, h, L), row, 1,
           W[DENSE_2].grad + head_at(c, h, f), f);
        for (ptrdiff_t i = 0; i < (ptrdiff_t)L * L; i++)
            d_bias[i % L] += d[i];
    }
}

/* Through the scores to d_in, accumulating. */
static void dense_backward(const struct engine *g, const struct sublayer *s, const struct work *w,
                           const float *x, float *d_in, int B, int L)
{
    const struct config *c = s->c;
    const struct param *const W = of_scores(s);

    scores_grad(g, s, w, B, L);
    g->ops.act_grad(&(struct act_grad){.kind = ACT_RELU,
                                       .d_x = w->d_array[SY_HIDDEN],
                                       .d_bias = W[DENSE_1_BIAS].grad,
                                       .d_y = w->d_array[SY_HIDDEN],
                                       .x = w->array[SY_HIDDEN],
                                       .rows = B * L,
                                       .n = c->H * hidden(c),
                                       .threads = g->threads});
    linear_backward(g, &W[DENSE_1], NULL, d_in, w->d_array[SY_HIDDEN], x, B * L, 1);
}

static void syn_backward(const struct engine *g, struct sublayer *s, const struct work *w,
                         struct sublayer_input from, float *d_in, const float *d_y, int skip)
{
    const int B = from.B, L = from.L;
    const size_t pairs = (size_t)B * (size_t)s->c->H * (size_t)L * (size_t)L;
    const struct attn a = syn_operands(s, w, B, L);
    const struct attn_grad d = {
        .d_o = w->d_array[SY_O],
        .d_v = w->d_array[SY_V],
        .d_add = dense(s->c) ? w->d_array[SY_SCORES] : of_scores(s)->grad,
    };

    CHECK(skip == 0);
    linear_backward(g, &s->weights[SYN_O], NULL, w->d_array[SY_O], d_y, w->array[SY_O], B * L, 0);
    if (dense(s->c))
        memset(w->d_array[SY_SCORES], 0, pairs * sizeof(float));
    s->state.attention.impl->backward(g, &a, &d, w->d_scratch);
    linear_backward(g, &s->weights[SYN_V], NULL, d_in, w->d_array[SY_V], from.at.at, B * L, 0);
    if (s->c->attn_bias) {
        linear_bias_grad(g, bias(s, SYN_O), d_y, B * L);
        linear_bias_grad(g, bias(s, SYN_V), w->d_array[SY_V], B * L);
    }
    if (dense(s->c))
        dense_backward(g, s, w, from.at.at, d_in, B, L);
}

/* ---- cost --------------------------------------------------------------------------------- */

/* Products of W_v, W_o and of the maps of the scores. */
static double maps_flop(const struct config *c, int B, int L)
{
    const double rows = (double)B * L, H = c->H;
    const double scores = dense(c) ? 2 * rows * H * hidden(c) * ((double)c->D + L) : 0;

    return 2 * rows * c->D * ((double)c->kv_heads + H) * c->dh + scores;
}

static struct sublayer_cost syn_cost(const struct sublayer *s, int B, int L, int M)
{
    static const float something = 0;
    const struct attn a = core(s, B, L, &something);

    (void)M;
    return (struct sublayer_cost){attn_flop(&a), attn_grad_flop(&a), maps_flop(s->c, B, L)};
}

const struct sublayer_kind sublayer_synthesizer = {
    .name = "synthesizer",
    .no_past = "synthesized scores are limited to one window  -> use --mem-kind recompute",
    .mixes = true,
    .attends = true,
    .place = DROP_ATTENTION,
    .params = syn_params,
    .bind = syn_bind,
    .arrays = syn_arrays,
    .arrays_grad = syn_arrays_grad,
    .scratch = syn_scratch,
    .forward = syn_forward,
    .backward = syn_backward,
    .ends_in = syn_operands,
    .cost = syn_cost,
};

/* SPDX-License-Identifier: MIT
 *
 * Attention through learned rows as a kind of sub-layer (variants/set.c): two blocks of cross
 * attention with a sum and a linear map of their own. It is no list of steps: learned rows have a
 * number of their own, and bind asks the backend for an implementation of attention. */
#include "condensed.h"
#include "variants/model/attention/sublayer_attention.h"
#include "variants/model/sublayer/sublayer_seen.h"
#include "variants/parts/linear.h"

#include <math.h>
#include <string.h>

struct isab {
    int inducing; /* learned rows */
    bool norms;   /* after both sums of a block */
};

static const struct choice choices[] = {
    ROW_INT(struct isab, inducing, "inducing", 1, 1 << 16, "learned rows that attend to the text",
            .scope = SCOPE_LAYER, .setting = true, .tiny = "3"),
    ROW_FLAG(struct isab, norms, "mab_ln", "1: norms inside of a block", .scope = SCOPE_LAYER,
             .setting = true, .absent = "0", .tiny = "0|1"),
    {0},
};

static void usual(const struct config *c, void *numbers)
{
    (void)c;
    *(struct isab *)numbers = (struct isab){.inducing = 32};
}

const struct part_numbers isab_numbers = {choices, NUMBERS_SIZE(struct isab), usual, NULL};

static const struct isab *numbers(const struct config *c) { return config_numbers(c, SLOT_MIXER); }

/* The arrays of each block, one behind the other; work space of norms, of gradients. */
enum { IS_BLOCK, IS_STATS = 2 };
enum {
    WEIGHT_Q,
    BIAS_Q,
    WEIGHT_K,
    BIAS_K,
    WEIGHT_V,
    BIAS_V,
    WEIGHT_O,
    BIAS_O,
    NORM_0,
    NORM_1 = NORM_0 + 2
};

/* One block: its B nq queries of width `in` attend to nx rows of width `from`. */
struct block {
    const struct param *w;
    bool norms;
    int B, H, W, nq, nx, in, from;
    float *q, *k, *v, *a, *lse; /* [B,nq,W] [B,nx,W] [B,nx,W] [B,nq,W] [B,H,nq] */
    float *s, *h, *r, *t, *y;   /* [B,nq,W] q + a, after the norm, W_o h + b, h + relu, result */
};

static int params_of_block(const struct config *c)
{
    return numbers(c)->norms ? NORM_1 + 2 : NORM_0;
}

static size_t block_floats(const struct config *c, int nth, int B, int L)
{
    const size_t m = (size_t)numbers(c)->inducing, l = (size_t)L, W = (size_t)config_q_width(c);
    const size_t nq = nth ? l : m, nx = nth ? m : l;

    return (size_t)B * (7 * nq * W + 2 * nx * W + (size_t)c->H * nq);
}

static struct block block_at(const struct sublayer *s, int nth, float *at, int B, int L)
{
    const struct config *const c = s->c;
    const int m = numbers(c)->inducing, W = config_q_width(c);
    struct block b = {.w = s->weights + 1 + (ptrdiff_t)nth * params_of_block(c),
                      .norms = numbers(c)->norms,
                      .B = B,
                      .H = c->H,
                      .W = W,
                      .nq = nth ? L : m,
                      .nx = nth ? m : L,
                      .in = nth ? c->D : W,
                      .from = nth ? W : c->D};
    const ptrdiff_t q = (ptrdiff_t)B * b.nq * W, x = (ptrdiff_t)B * b.nx * W;
    float **const of[] = {&b.q, &b.a, &b.s, &b.h, &b.r, &b.t, &b.y};

    for (size_t i = 0; i < ARRAY_LEN(of); i++)
        *of[i] = at + (ptrdiff_t)i * q;
    b.k = at + 7 * q;
    b.v = b.k + x;
    b.lse = b.v + x;
    return b;
}

/* ---- parameters and binding --------------------------------------------------------------- */

static void params(const struct sublayer *s, const char *prefix, const char *inner,
                   struct params *p)
{
    static const char names[] = "qkvo";
    const struct config *const c = s->c;
    const int W = config_q_width(c);

    (void)inner;
    params_wide(p, params_add(p, INIT_LINEAR, 0, 2, (const int[]){numbers(c)->inducing, W},
                              "%sinducing", prefix));
    for (int nth = 0; nth < 2; nth++) {
        const int in[] = {nth ? c->D : W, nth ? W : c->D, nth ? W : c->D, W};
        for (int i = 0; i < 4; i++) {
            params_narrows(p, params_add(p, INIT_LINEAR, 0, 2, (const int[]){W, in[i]},
                                         "%smab%d.%c.weight", prefix, nth, names[i]));
            params_add(p, INIT_ZERO, 0, 1, &W, "%smab%d.%c.bias", prefix, nth, names[i]);
        }
        for (int i = 0; i < 2 && numbers(c)->norms; i++) {
            params_add(p, INIT_ONE, 0, 1, &W, "%smab%d.ln%d.weight", prefix, nth, i);
            params_add(p, INIT_ZERO, 0, 1, &W, "%smab%d.ln%d.bias", prefix, nth, i);
        }
    }
}

static struct attn core(const struct config *c, int B, int nq, int nx)
{
    struct attn a = attn_of_config(c, B, nq, 0);

    a.K = nx;
    a.k_at.batch = a.v_at.batch = nx * a.k_at.row;
    a.scale = (float)(1 / sqrt((double)config_q_width(c)));
    return a;
}

static enum status bind(struct sublayer *s, const struct engine *g, struct extent max,
                        struct arena *a, struct err *e)
{
    const struct config *const c = s->c;
    const int most = max_int(max.L, numbers(c)->inducing);

    (void)a;
    if (!s->bare && config_q_width(c) != c->D)
        return fail(e, E_UNSUPPORTED, "%s: heads of width %d in a stream of %d  -> use --d-head %d",
                    c->variant->name, config_q_width(c), c->D, c->D / c->H);
    s->state.attention = (struct attention){.prepared = core(c, max.B, most, most)};
    return engine_attn(g, &s->state.attention.prepared, &s->state.attention.impl, e);
}

static void arrays(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    for (int nth = 0; nth < 2; nth++) {
        const size_t n = block_floats(s->c, nth, max.B, max.L);
        out[IS_BLOCK + nth] = (struct array){n, n, false, PART_ACTIVATIONS};
    }
}

static void arrays_grad(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    const size_t rows = (size_t)max.B * (size_t)max_int(max.L, numbers(s->c)->inducing);

    sublayer_arrays_grad(s, max, out);
    out[IS_STATS] = (struct array){0, NORM_STATS * rows, true, PART_SCRATCH};
}

/* ---- forward ------------------------------------------------------------------------------ */

static struct attn operands(const struct sublayer *s, const struct block *b)
{
    struct attn a = core(s->c, b->B, b->nq, b->nx);

    a.q = b->q;
    a.k = b->k;
    a.v = b->v;
    a.o = b->a;
    a.lse = b->lse;
    return a;
}

static void map(const struct engine *g, const struct block *b, int which, float *y, const float *x,
                int rows)
{
    linear_forward(g, &b->w[which], &b->w[which + 1], y, x, rows, (struct act){.y = y});
}

/* The sum `x`, normed if the block has norms. */
static void norm(const struct engine *g, const struct block *b, int which, float *y, const float *x)
{
    const int rows = b->B * b->nq;

    if (!b->norms) {
        memcpy(y, x, sizeof(float) * (size_t)rows * (size_t)b->W);
        return;
    }
    g->ops.norm(&(struct norm){.kind = NORM_LAYER,
                               .y = y,
                               .x = x,
                               .weight = b->w[which].data,
                               .bias = b->w[which + 1].data,
                               .rows = rows,
                               .n = b->W,
                               .eps = 1e-5f,
                               .threads = g->threads});
}

/* Its queries are projected. */
static void run(const struct engine *g, const struct sublayer *s, const struct work *w, int nth,
                const struct block *b, const float *x)
{
    const struct attn a = operands(s, b);
    const int rows = b->B * b->nq;

    map(g, b, WEIGHT_K, b->k, x, b->B * b->nx);
    map(g, b, WEIGHT_V, b->v, x, b->B * b->nx);
    sublayer_attend(g, s, w, nth, 0, &a);
    g->ops.act(&(struct act){
        .y = b->s, .x = b->q, .add = b->a, .rows = rows, .n = b->W, .threads = g->threads});
    norm(g, b, NORM_0, b->h, b->s);
    map(g, b, WEIGHT_O, b->r, b->h, rows);
    g->ops.act(&(struct act){.kind = ACT_RELU,
                             .y = b->t,
                             .x = b->r,
                             .add = b->h,
                             .rows = rows,
                             .n = b->W,
                             .threads = g->threads});
    norm(g, b, NORM_1, b->y, b->t);
}

static void forward(const struct engine *g, struct sublayer *s, struct work *w,
                    struct sublayer_input from, struct act epilogue)
{
    const int B = from.B, L = from.L;
    const struct block first = block_at(s, 0, w->array[IS_BLOCK], B, L),
                       second = block_at(s, 1, w->array[IS_BLOCK + 1], B, L);
    const size_t learned = (size_t)first.nq * (size_t)first.W;

    CHECK(from.M == 0);
    map(g, &first, WEIGHT_Q, first.q, s->weights->data, first.nq);
    for (int b = 1; b < B; b++)
        memcpy(first.q + (size_t)b * learned, first.q, learned * sizeof(float));
    run(g, s, w, 0, &first, from.at.at);
    map(g, &second, WEIGHT_Q, second.q, from.at.at, B * L);
    run(g, s, w, 1, &second, first.y);
    linear_epilogue(g, epilogue, second.y, B * L, second.W);
}

/* ---- backward ----------------------------------------------------------------------------- */

static void norm_back(const struct engine *g, const struct block *b, int which, float *d_x,
                      const float *d_y, const float *x, float *stats)
{
    const int rows = b->B * b->nq;

    if (!b->norms) {
        memcpy(d_x, d_y, sizeof(float) * (size_t)rows * (size_t)b->W);
        return;
    }
    g->ops.norm_grad(&(struct norm_grad){.kind = NORM_LAYER,
                                         .d_x = d_x,
                                         .d_weight = b->w[which].grad,
                                         .d_bias = b->w[which + 1].grad,
                                         .d_y = d_y,
                                         .x = x,
                                         .weight = b->w[which].data,
                                         .stats = stats,
                                         .rows = rows,
                                         .n = b->W,
                                         .eps = 1e-5f,
                                         .threads = g->threads});
}

/* From d_y to the gradient of the queries, d->s, and of the rows x, added to beta d_x. */
static void run_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                     const struct block *b, const struct block *d, const float *d_y, const float *x,
                     float *d_x, float beta)
{
    const struct attn a = operands(s, b);
    const struct attn_grad of = {.d_o = d->a, .d_q = d->q, .d_k = d->k, .d_v = d->v};
    const int rows = b->B * b->nq;
    const size_t bytes = sizeof(float) * (size_t)rows * (size_t)b->W;

    norm_back(g, b, NORM_1, d->t, d_y, b->t, w->d_array[IS_STATS]);
    g->ops.act_grad(&(struct act_grad){.kind = ACT_RELU,
                                       .d_x = d->r,
                                       .d_y = d->t,
                                       .x = b->r,
                                       .rows = rows,
                                       .n = b->W,
                                       .threads = g->threads});
    linear_backward(g, &b->w[WEIGHT_O], &b->w[WEIGHT_O + 1], d->t, d->r, b->h, rows, 1);
    norm_back(g, b, NORM_0, d->s, d->t, b->s, w->d_array[IS_STATS]);
    memcpy(d->a, d->s, bytes);
    s->state.attention.impl->backward(g, &a, &of, w->d_scratch);
    g->ops.act(&(struct act){
        .y = d->s, .x = d->s, .add = d->q, .rows = rows, .n = b->W, .threads = g->threads});
    linear_backward(g, &b->w[WEIGHT_K], &b->w[WEIGHT_K + 1], d_x, d->k, x, b->B * b->nx, beta);
    linear_backward(g, &b->w[WEIGHT_V], &b->w[WEIGHT_V + 1], d_x, d->v, x, b->B * b->nx, 1);
}

static void backward(const struct engine *g, struct sublayer *s, const struct work *w,
                     struct sublayer_input from, float *d_in, const float *d_y, int skip)
{
    const int B = from.B, L = from.L;
    const struct block first = block_at(s, 0, w->array[IS_BLOCK], B, L),
                       second = block_at(s, 1, w->array[IS_BLOCK + 1], B, L),
                       d_first = block_at(s, 0, w->d_array[IS_BLOCK], B, L),
                       d_second = block_at(s, 1, w->d_array[IS_BLOCK + 1], B, L);
    const size_t learned = (size_t)first.nq * (size_t)first.W;

    CHECK(skip == 0);
    run_grad(g, s, w, &second, &d_second, d_y, first.y, d_first.y, 0);
    linear_backward(g, &second.w[WEIGHT_Q], &second.w[WEIGHT_Q + 1], d_in, d_second.s, from.at.at,
                    B * L, 0);
    run_grad(g, s, w, &first, &d_first, d_first.y, from.at.at, d_in, 1);
    for (size_t b = 1; b < (size_t)B; b++)
        for (size_t i = 0; i < learned; i++)
            d_first.s[i] += d_first.s[b * learned + i];
    linear_backward(g, &first.w[WEIGHT_Q], &first.w[WEIGHT_Q + 1], d_first.q, d_first.s,
                    s->weights->data, first.nq, 0);
    for (size_t i = 0; i < learned; i++)
        s->weights->grad[i] += d_first.q[i];
}

/* ---- cost --------------------------------------------------------------------------------- */

static struct sublayer_cost cost(const struct sublayer *s, int B, int L, int M)
{
    const struct config *const c = s->c;
    const int m = numbers(c)->inducing;
    const double W = config_q_width(c), rows = (double)B * L, learned = (double)B * m;
    const struct attn first = core(c, B, m, L), second = core(c, B, L, m);

    (void)M;
    return (struct sublayer_cost){
        .forward = attn_flop(&first) + attn_flop(&second),
        .backward = attn_grad_flop(&first) + attn_grad_flop(&second),
        .maps = 2 * W * (m * W + 2 * rows * c->D + learned * W) /* q, k and v, o of the first */
                + 2 * W * (rows * c->D + 2 * learned * W + rows * W) /* of the second */
    };
}

const struct sublayer_kind sublayer_isab = {
    .name = "isab",
    .no_past = "learned rows read a whole text  -> use --mem 0",
    .mixes = true,
    .attends = true,
    .wide = true,
    .place = DROP_ATTENTION,
    .params = params,
    .bind = bind,
    .arrays = arrays,
    .arrays_grad = arrays_grad,
    .scratch = condensed_scratch,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};

/* SPDX-License-Identifier: MIT
 *
 * Cases of the gradients of the row operations. Work space starts as NaN, gradients of weights are
 * added to what is there, and neither threads nor results over operands change a bit. */
#include "op_inner.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const int sizes[][2] = {{1, 1},   {3, 2},   {2, 8},   {5, 7},    {33, 15},
                               {65, 17}, {31, 37}, {5, 130}, {70, 1003}}; /* rows, n */
enum { N_SIZES = ARRAY_LEN(sizes) };
static const int square[2] = {512, 512};
static const float was = 0.5f; /* in the gradients of weights */

static struct output *sums(struct trial *t, const char *name, size_t n)
{
    return output(t, name, n, constant(t, n, was));
}

/* Of a sum of `terms` numbers that is `total` and off by `each`, added to what was there. */
static double sum_bound(double each, double total) { return each + 4 * U * (fabs(total) + 1); }

/* ---- softmax ------------------------------------------------------------------------------ */

enum { SOFTMAX_CASES = 2 * N_SIZES };

static void softmax_make(struct trial *t, int at)
{
    const bool large = at >= SOFTMAX_CASES;
    const int rel = large ? 0 : pick(&at, 2);

    set_size(t, large ? square : sizes[at]);
    float *p = operand(t, t->size, "x", 0, 1);
    backend_ref.ops.softmax(&(struct softmax){.s = p,
                                              .ld = t->n,
                                              .rows = t->rows,
                                              .cols = t->n,
                                              .hi = t->n / 2 + 1,
                                              .hi_slope = 1,
                                              .threads = 1});
    const int n_rel = t->n / 2 + 1;
    t->a.softmax_grad = (struct softmax_grad){
        .p = p,
        .ld = t->n,
        .rows = t->rows,
        .cols = t->n,
        .rel = rel ? operand(t, (size_t)(t->rows * n_rel), "rel", 0, 1) : NULL,
        .rel_ld = n_rel,
        .n_rel = n_rel,
        .shift = t->rows / 2 - t->n / 3};
    output(t, "d", t->size, operand(t, t->size, "d_out", 0, 1));
    snprintf(t->what, sizeof(t->what), "%dx%d%s", t->rows, t->n, rel ? ", rel" : "");
}

static void softmax_run(const struct engine *g, struct trial *t, float *const *out)
{
    struct softmax_grad o = t->a.softmax_grad;

    o.d = out[0];
    o.threads = g->threads;
    g->ops.softmax_grad(&o);
}

/* Operands are below 5 in size, and a sum of n terms of which p is the weight is subtracted. */
static void weighted_bounds(struct trial *t)
{
    for (size_t i = 0; i < t->size; i++)
        t->out[0].bound[i] = U * (2 * t->n + 32) * 10;
}

/* ---- norm --------------------------------------------------------------------------------- */

enum { NORM_CASES = 2 * NORM_KIND_COUNT * N_SIZES };

static void norm_make(struct trial *t, int at)
{
    const bool large = at >= NORM_CASES;
    const int over = large ? 0 : pick(&at, 2);

    t->kind = large ? NORM_LAYER : pick(&at, NORM_KIND_COUNT);
    set_size(t, large ? square : sizes[at]);
    if (t->kind == NORM_UNBIASED && t->n == 1) /* is not defined */
        t->kind = NORM_LAYER;
    t->over = over;
    const bool centred = norm_centred((enum norm_kind)t->kind);
    const size_t n = (size_t)t->n;
    float *x = operand(t, t->size, "x", 1, 1), *weight = operand(t, n, "weight", 1, 0.5f);
    float *d_y = operand(t, t->size, "d_y", 0, 1);
    t->a.norm = (struct norm){.kind = (enum norm_kind)t->kind,
                              .x = x,
                              .weight = weight,
                              .rows = t->rows,
                              .n = t->n,
                              .eps = 1e-5f};
    t->a.norm_grad = (struct norm_grad){.kind = (enum norm_kind)t->kind,
                                        .d_y = d_y,
                                        .x = x,
                                        .weight = weight,
                                        .stats = scratch(t, NORM_STATS * (size_t)t->rows),
                                        .rows = t->rows,
                                        .n = t->n,
                                        .eps = 1e-5f};
    output(t, "d_x", t->size, d_y);
    sums(t, "d_weight", t->kind == NORM_SCALE ? 1 : n);
    if (centred)
        sums(t, "d_bias", n);
    snprintf(t->what, sizeof(t->what), "kind %d, %dx%d%s", t->kind, t->rows, t->n,
             over ? ", in place" : "");
}

static void norm_run(const struct engine *g, struct trial *t, float *const *out)
{
    struct norm_grad o = t->a.norm_grad;

    o.d_x = out[0];
    o.d_y = t->in_place ? out[0] : o.d_y;
    o.d_weight = out[1];
    o.d_bias = norm_centred(o.kind) ? out[2] : NULL;
    o.threads = g->threads;
    g->ops.norm_grad(&o);
}

/* xhat is off by U 2 T / root where a mean is taken off, and by its factors; t, the two sums of n
 * products and the last three steps round 2 n + 40 times. All of it is relative to the sizes of the
 * three terms of d_x. */
static void norm_bounds(struct trial *t)
{
    const struct norm *f = &t->a.norm;
    const float *d_y = t->a.norm_grad.d_y;
    double weight = 0, bias = 0;

    for (int i = 0; i < t->rows; i++) {
        const struct moments m = moments_of(f, i);
        const double xhat = m.deviation / m.root;
        double most = 0, sum_t = 0, sum_tx = 0;
        for (int e = 0; e < t->n; e++) {
            const double te = fabs((double)d_y[i * t->n + e] * norm_weight(f, e));
            most = fmax(most, te);
            sum_t += te;
            sum_tx += te * fabs(norm_term(f, i, e) - m.mean) / m.root;
        }
        const double pull = f->kind == NORM_SCALE      ? 1
                            : f->kind == NORM_UNBIASED ? 1.0 / (t->n - 1)
                                                       : 1.0 / t->n;
        const double relative =
            U * (2 * t->n + 40 + (norm_centred(f->kind) ? 8 * m.largest / m.root : 0));
        const double terms = (most + sum_t / t->n + xhat * sum_tx * pull) / m.root;
        for (int e = 0; e < t->n; e++) {
            const double d = fabs((double)d_y[i * t->n + e]);
            t->out[0].bound[i * t->n + e] = relative * terms;
            weight += d * xhat * (relative + U * t->rows);
            bias += d * U * t->rows;
        }
    }
    for (int k = 1; k < t->n_out; k++)
        for (size_t e = 0; e < t->out[k].n; e++)
            t->out[k].bound[e] = sum_bound(k == 1 ? weight : bias, (double)t->out[k].want[e]);
}

/* ---- activations -------------------------------------------------------------------------- */

static const float spreads[] = {1, 8, 100};
enum { N_SPREADS = ARRAY_LEN(spreads), ACT_CASES = 4 * N_SPREADS * ACT_KINDS * N_SIZES };
static const float beta = 1.375f;

static void act_make(struct trial *t, int at)
{
    const bool large = at >= ACT_CASES;
    const int mode = large ? 1 : pick(&at, 4), spread = large ? 0 : pick(&at, N_SPREADS);

    t->kind = large ? ACT_RELU : pick(&at, ACT_KINDS);
    set_size(t, large ? square : sizes[at]);
    t->over = mode & 2;
    const size_t n = (size_t)t->n;
    const bool swish = t->kind == ACT_SWISH;
    float *x = operand(t, t->size, "x", 0, spreads[spread]);
    float *d_y = operand(t, t->size, "d_y", 0, 1);
    for (size_t i = 0; t->kind == ACT_RELU && spread == 0 && i < t->size; i++)
        x[i] = fmaxf(x[i], 0); /* its own output will do */
    t->a.act_grad = (struct act_grad){.kind = (enum act_kind)t->kind,
                                      .sums = scratch(t, n),
                                      .d_y = d_y,
                                      .x = t->kind == ACT_NONE ? NULL : x,
                                      .bias = mode & 1 ? operand(t, n, "a", 0, 1) : NULL,
                                      .beta = swish ? &beta : NULL,
                                      .rows = t->rows,
                                      .n = t->n};
    output(t, "d_x", t->size, d_y);
    sums(t, "d_bias", n);
    if (swish)
        sums(t, "d_beta", 1);
    snprintf(t->what, sizeof(t->what), "kind %d, %dx%d, spread %g, mode %d", t->kind, t->rows, t->n,
             (double)spreads[spread], mode);
}

static void act_run(const struct engine *g, struct trial *t, float *const *out)
{
    struct act_grad o = t->a.act_grad;

    o.d_x = out[0];
    o.d_y = t->in_place ? out[0] : o.d_y;
    o.d_bias = out[1];
    o.d_beta = t->n_out > 2 ? out[2] : NULL;
    o.threads = g->threads;
    g->ops.act_grad(&o);
}

/* An element as `exactly` says; a column of `rows` of them rounds as often when it is summed.
 * d beta = d_y t^2 s (1-s), a slope of its own. */
static void act_bounds(struct trial *t)
{
    const struct act_grad *o = &t->a.act_grad;
    double of_beta = 0;

    for (int e = 0; e < t->n; e++) {
        double sum = 0;
        for (int i = 0; i < t->rows; i++) {
            const int at = i * t->n + e;
            const double d_y = (double)o->d_y[at];
            const double arg = (o->x ? (double)o->x[at] : 0) + (o->bias ? (double)o->bias[e] : 0);
            const struct exact x = exactly(o->kind, arg, o->beta ? (double)beta : 1);
            const double size = fabs(d_y * x.slope);
            const double bound = fabs(d_y) * x.slope_bound + 3 * U * size;
            t->out[0].bound[at] = bound;
            sum += bound + (t->rows + 2) * U * size;
            if (o->beta) {
                const double z = (double)beta * arg,
                             part = d_y * arg * arg / (2 + exp(z) + exp(-z));
                of_beta += U * (6 * fabs(z) + 60 + t->rows + t->n) * fabs(part) + SMALLEST;
            }
        }
        t->out[1].bound[e] = sum_bound(sum, (double)t->out[1].want[e]);
    }
    if (o->beta)
        t->out[2].bound[0] = sum_bound(of_beta, (double)t->out[2].want[0]);
}

/* ---- gated units -------------------------------------------------------------------------- */

enum { GLU_CASES = 4 * N_SPREADS * ACT_KINDS * N_SIZES };

/* a and b are columns of one matrix with gaps, and so are their gradients. */
static void glu_make(struct trial *t, int at)
{
    const bool large = at >= GLU_CASES;
    const int mode = large ? 1 : pick(&at, 4), spread = large ? 0 : pick(&at, N_SPREADS);

    t->kind = large ? ACT_SWISH : pick(&at, ACT_KINDS);
    set_size(t, large ? square : sizes[at]);
    t->over = mode & 2;
    t->ld = 2 * t->n + 3;
    const size_t n = (size_t)t->n, wide = (size_t)(t->rows * t->ld);
    const bool bias = mode & 1;
    float *pre = operand(t, wide, "pre", 0, spreads[spread]);
    t->a.glu_grad = (struct glu_grad){.kind = (enum act_kind)t->kind,
                                      .d_y = operand(t, t->size, "d_y", 0, 1),
                                      .a = pre,
                                      .b = pre + n + 1,
                                      .a_bias = bias ? operand(t, n, "a", 0, 1) : NULL,
                                      .b_bias = bias ? operand(t, n, "b", 0, 1) : NULL,
                                      .ld = t->ld,
                                      .rows = t->rows,
                                      .n = t->n};
    output(t, "d_pre", wide, pre);
    if (bias) {
        sums(t, "d_a_bias", n);
        sums(t, "d_b_bias", n);
    }
    snprintf(t->what, sizeof(t->what), "kind %d, %dx%d, spread %g, mode %d", t->kind, t->rows, t->n,
             (double)spreads[spread], mode);
}

static void glu_run(const struct engine *g, struct trial *t, float *const *out)
{
    struct glu_grad o = t->a.glu_grad;

    o.d_a = out[0];
    o.d_b = out[0] + o.n + 1;
    if (t->in_place) {
        o.a = o.d_a;
        o.b = o.d_b;
    }
    if (o.a_bias) {
        o.d_a_bias = out[1];
        o.d_b_bias = out[2];
    }
    o.threads = g->threads;
    g->ops.glu_grad(&o);
}

/* d_a = d_y b f', d_b = d_y f */
static void glu_bounds(struct trial *t)
{
    const struct glu_grad *o = &t->a.glu_grad;

    for (int e = 0; e < t->n; e++) {
        double sum[2] = {0, 0};
        for (int i = 0; i < t->rows; i++) {
            const ptrdiff_t at[2] = {i * t->ld + e, i * t->ld + e + t->n + 1};
            const double d_y = (double)o->d_y[i * t->n + e];
            const double a = (double)o->a[at[0]] + (o->a_bias ? (double)o->a_bias[e] : 0);
            const double b = (double)o->a[at[1]] + (o->b_bias ? (double)o->b_bias[e] : 0);
            const struct exact x = exactly(o->kind, a, 1);
            const double size[2] = {fabs(d_y * b * x.slope), fabs(d_y * x.f)};
            const double bound[2] = {fabs(d_y * b) * x.slope_bound + 5 * U * size[0],
                                     fabs(d_y) * (x.f_bound + U * fabs(x.f)) + 3 * U * size[1]};
            for (int k = 0; k < 2; k++) {
                t->out[0].bound[at[k]] = bound[k];
                sum[k] += bound[k] + (t->rows + 2) * U * size[k];
            }
        }
        for (int k = 1; k < t->n_out; k++)
            t->out[k].bound[e] = sum_bound(sum[k - 1], (double)t->out[k].want[e]);
    }
}

/* ---- gates -------------------------------------------------------------------------------- */

enum { N_GATES = GATE_UPDATE + 1, GATE_CASES = 2 * N_GATES * N_SIZES };

static bool has_y(int k) { return k == GATE_INPUT || k == GATE_OUTPUT || k == GATE_HIGHWAY; }
static bool has_c(int k) { return k == GATE_SIGTANH || k == GATE_UPDATE; }
static bool has_b(int k) { return k != GATE_INPUT && k != GATE_RESET; }

static void gate_make(struct trial *t, int at)
{
    const bool large = at >= GATE_CASES;
    const int over = large ? 0 : pick(&at, 2);

    t->kind = large ? GATE_UPDATE : pick(&at, N_GATES);
    set_size(t, large ? square : sizes[at]);
    t->over = over;
    t->ld = t->n + (large ? 0 : 3);
    const size_t n = (size_t)t->n, wide = (size_t)(t->rows * t->ld);
    float *a = operand(t, wide, "a", 0, 2), *c = operand(t, wide, "c", 0, 1);
    float *y = operand(t, t->size, "y", 0, 1), *d_out = operand(t, t->size, "d_out", 0, 1);
    float *b = operand(t, n, "bias", 1, 1);
    t->a.gate_grad = (struct gate_grad){.kind = (enum gate_kind)t->kind,
                                        .d_out = d_out,
                                        .x = operand(t, t->size, "x", 0, 1),
                                        .y = has_y(t->kind) ? y : NULL,
                                        .a = a,
                                        .c = has_c(t->kind) ? c : NULL,
                                        .b = has_b(t->kind) ? b : NULL,
                                        .ld = t->ld,
                                        .rows = t->rows,
                                        .n = t->n};
    output(t, "d_x", t->size, d_out);
    output(t, "d_a", wide, a);
    if (has_y(t->kind))
        output(t, "d_y", t->size, NULL);
    if (has_c(t->kind))
        output(t, "d_c", wide, c);
    if (has_b(t->kind))
        sums(t, "d_b", n);
    snprintf(t->what, sizeof(t->what), "kind %d, %dx%d%s", t->kind, t->rows, t->n,
             over ? ", in place" : "");
}

static void gate_run(const struct engine *g, struct trial *t, float *const *out)
{
    struct gate_grad o = t->a.gate_grad;
    int k = 2;

    o.d_x = out[0];
    o.d_a = out[1];
    o.d_y = has_y(t->kind) ? out[k++] : NULL;
    o.d_c = has_c(t->kind) ? out[k++] : NULL;
    o.d_b = has_b(t->kind) ? out[k++] : NULL;
    if (t->in_place) {
        o.d_out = out[0];
        o.a = o.d_a;
        o.c = o.d_c;
    }
    o.threads = g->threads;
    g->ops.gate_grad(&o);
}

/* At most five factors below 5 are multiplied; exp, logistic and tanh are good to 4 to 8 U each. */
static void gate_bounds(struct trial *t)
{
    const double each = U * 40 * 25;

    for (int k = 0; k < t->n_out; k++) {
        struct output *o = &t->out[k];
        const bool sum = has_b(t->kind) && k == t->n_out - 1;
        const ptrdiff_t ld = o->n == t->size ? t->n : t->ld;
        for (int e = 0; e < t->n; e++)
            for (int i = 0; i < (sum ? 1 : t->rows); i++)
                o->bound[i * ld + e] = sum ? t->rows * (each + U * 5 * sqrt(t->rows)) : each;
    }
}

/* ---- recurrent cells ---------------------------------------------------------------------- */

static const int cell_sizes[][2] = {{1, 1}, {3, 8}, {2, 15}, {3, 21}, {5, 37}, {70, 501}};
enum { CELL_CASES = 8 * CELL_KINDS * ARRAY_LEN(cell_sizes) };

static void cell_make(struct trial *t, int at)
{
    const bool large = at >= CELL_CASES;
    const int mode = large ? 0 : pick(&at, 8); /* 1: the first step, 2: x repeats, 4: in place */

    t->kind = large ? CELL_LSTM : pick(&at, CELL_KINDS);
    set_size(t, large ? square : cell_sizes[at]);
    const size_t G = (size_t)cell_gates((enum rnn_cell_kind)t->kind);
    const bool first = mode & 1;
    t->over = mode & 4;
    float *out = constant(t, t->size, 0), *c_out = constant(t, t->size, 0);
    float *state = operand(t, t->size, "state", 0, 1), *c = operand(t, t->size, "c", 0, 1);
    const struct rnn_step of = {.kind = (enum rnn_cell_kind)t->kind,
                                .out = out,
                                .c_out = c_out,
                                .x = operand(t, G * t->size, "x", 0, 1),
                                .x_row = mode & 2 ? 0 : (ptrdiff_t)G * t->n,
                                .h = first ? NULL : operand(t, G * t->size, "h", 0, 1),
                                .b = operand(t, G * (size_t)t->n, "b", 0, 1),
                                .state = first ? NULL : state,
                                .c = first ? NULL : c,
                                .rows = t->rows,
                                .n = t->n,
                                .threads = 1};
    backend_ref.ops.cell(&of);
    float *d_out = operand(t, t->size, "d_out", 0, 1);
    t->a.cell_grad = (struct rnn_step_grad){.of = of, .d_out = d_out};
    output(t, "d_x", G * t->size, NULL);
    output(t, "d_h", G * t->size, NULL);
    if (t->kind == CELL_GRU)
        output(t, "d_state", t->size, d_out);
    if (t->kind == CELL_LSTM)
        output(t, "d_c", t->size, operand(t, t->size, "d_c", 0, 1));
    snprintf(t->what, sizeof(t->what), "%s, %dx%d, mode %d", rnn_cell_name[t->kind], t->rows, t->n,
             mode);
}

static void cell_run(const struct engine *g, struct trial *t, float *const *out)
{
    struct rnn_step_grad o = t->a.cell_grad;
    const bool gru = t->kind == CELL_GRU;

    o.d_x = out[0];
    o.d_h = t->in_place && !gru ? out[0] : out[1];
    o.d_state = gru ? out[2] : NULL;
    o.d_c = t->kind == CELL_LSTM ? out[2] : NULL;
    if (t->in_place && gru)
        o.d_out = out[2];
    o.of.threads = g->threads;
    g->ops.cell_grad(&o);
    if (o.d_h == out[0])
        memcpy(out[1], out[0], t->out[0].n * sizeof(float));
}

/* As forward, the terms times the gradients that come in. */
static void cell_bounds(struct trial *t)
{
    for (int k = 0; k < t->n_out; k++)
        for (size_t i = 0; i < t->out[k].n; i++)
            t->out[k].bound[i] = 17 * U * 16;
}

/* ---- negative log-likelihood -------------------------------------------------------------- */

enum { NLL_ROWS = ARRAY_LEN(((struct trial *)0)->target), NLL_CASES = 2 * N_SIZES };

static void nll_make(struct trial *t, int at)
{
    const bool large = at >= NLL_CASES;
    const int over = large ? 0 : pick(&at, 2);
    const int rows = large ? NLL_ROWS : min_int(sizes[at][0], NLL_ROWS);

    set_size(t, (const int[2]){rows, large ? 256 : sizes[at][1]});
    t->over = over;
    for (int i = 0; i < rows; i++)
        t->target[i] = (int32_t)(rng_u32(SEED, 7, (uint64_t)i) % (uint32_t)t->n);
    float *x = operand(t, t->size, "x", 0, 1);
    t->a.nll_grad = (struct nll_grad){
        .logits = x, .target = t->target, .scale = 0.25f, .rows = rows, .n = t->n};
    output(t, "d_logits", t->size, x);
    snprintf(t->what, sizeof(t->what), "%dx%d%s", rows, t->n, over ? ", in place" : "");
}

static void nll_run(const struct engine *g, struct trial *t, float *const *out)
{
    struct nll_grad o = t->a.nll_grad;

    o.d_logits = out[0];
    o.logits = t->in_place ? out[0] : o.logits;
    o.threads = g->threads;
    g->ops.nll_grad(&o);
}

/* ---- the rows ----------------------------------------------------------------------------- */

#define TIMED_ELEMENTS(n) "Gelem/s", 1e-9 * (n)

const struct op_row op_grads[GRAD_ROWS] = {
    {"softmax_grad", OP_softmax_grad, SOFTMAX_CASES, softmax_make, softmax_run, weighted_bounds,
     .same_bits = true, .timing = {{"512x512", TIMED_ELEMENTS(512 * 512)}}},
    {"norm_grad", OP_norm_grad, NORM_CASES, norm_make, norm_run, norm_bounds, .same_bits = true,
     .timing = {{"512x512", TIMED_ELEMENTS(512 * 512)}}},
    {"act_grad", OP_act_grad, ACT_CASES, act_make, act_run, act_bounds, .same_bits = true,
     .timing = {{"512x512 relu", TIMED_ELEMENTS(512 * 512)}}},
    {"glu_grad", OP_glu_grad, GLU_CASES, glu_make, glu_run, glu_bounds, .same_bits = true,
     .timing = {{"512x512 swish", TIMED_ELEMENTS(512 * 512)}}},
    {"gate_grad", OP_gate_grad, GATE_CASES, gate_make, gate_run, gate_bounds, .same_bits = true,
     .timing = {{"512x512 update", TIMED_ELEMENTS(512 * 512)}}},
    {"cell_grad", OP_cell_grad, CELL_CASES, cell_make, cell_run, cell_bounds, .same_bits = true,
     .timing = {{"512x512 lstm", TIMED_ELEMENTS(512 * 512)}}},
    {"nll_grad", OP_nll_grad, NLL_CASES, nll_make, nll_run, weighted_bounds, .same_bits = true,
     .timing = {{"64x256", TIMED_ELEMENTS(64 * 256)}}},
};

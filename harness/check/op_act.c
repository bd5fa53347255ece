/* SPDX-License-Identifier: MIT
 *
 * Cases of activations and gated units, and of their gradients: from the middle of the curves to
 * their ends, NaN, results over operands. */
#include "op_inner.h"

static const float beta = 1.375f, factor = -0.4375f;
static const float spreads[] = {1, 1e-3f, 8, 100};
enum { N_SPREADS = ARRAY_LEN(spreads), ACT_MODES = 16 };
enum { GAP = 3 }; /* between rows of x, with a factor */
enum {
    ACT_SIZED = ACT_MODES * N_SPREADS * ACT_KINDS * OP_SIZES,
    ACT_CASES = ACT_SIZED + ACT_KINDS
};

/* The whole curve in steps, because the error of polynomials varies along it. */
static void everywhere(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = 16.0f * (2 * (float)i / (float)n - 1);
    x[0] = -1e9f, x[1] = 1e9f, x[2] = -0.0f, x[3] = 0, x[4] = NAN;
}

static bool takes_beta(int kind) { return kind == ACT_SWISH || kind == ACT_TANH; }

/* Largest values stay finite, so that errors are. */
static void within_range(int kind, float *x, size_t n)
{
    for (size_t i = 0; kind == ACT_EXP && i < n; i++)
        x[i] = x[i] > 60 ? 60 : x[i];
}

static void act_make(struct trial *t, int at)
{
    static const int curve[2] = {64, 1024};
    const bool large = at >= ACT_CASES, whole = !large && at >= ACT_SIZED;
    int mode = large ? 1 : 0, spread = 0;

    if (large)
        t->kind = ACT_RELU;
    else if (whole)
        t->kind = at - ACT_SIZED;
    else {
        mode = pick(&at, ACT_MODES);
        spread = pick(&at, N_SPREADS);
        t->kind = pick(&at, ACT_KINDS);
    }
    set_size(t, large ? op_square : whole ? curve : op_sizes[at]);
    t->over = mode == (mode & 7) && mode & 4;
    t->ld = mode & 8 ? t->n + GAP : t->n;
    const size_t wide = (size_t)(t->rows * t->ld);
    float *x = operand(t, wide, "x", 0, spreads[spread]);
    within_range(t->kind, x, wide);
    if (whole)
        everywhere(x, t->size);
    else if (t->size > 1)
        x[t->rows / 2 * t->ld + t->n / 2] = NAN;
    t->a.act = (struct act){.kind = (enum act_kind)t->kind,
                            .x = x,
                            .bias = mode & 1 ? operand(t, (size_t)t->n, "bias", 0, 1) : NULL,
                            .add = mode & 2 ? operand(t, t->size, "add", 0, 1) : NULL,
                            .beta = takes_beta(t->kind) ? &beta : NULL,
                            .factor = mode & 8 ? &factor : NULL,
                            .x_row = mode & 8 ? t->ld : 0,
                            .rows = t->rows,
                            .n = t->n};
    output(t, "y", t->size, t->over ? x : NULL);
    snprintf(t->name, sizeof(t->name), "kind %d, %dx%d, spread %g, mode %d", t->kind, t->rows, t->n,
             (double)spreads[spread], mode);
}

RUN(act, act, o.y = out[0], o.x = t->in_place ? out[0] : o.x)

static double factor_of(const float *f) { return f ? (double)*f : 1; }

/* The argument is rounded once, then f, then its multiple, then f + add; the reference stores it
 * once. */
static void act_bounds(struct trial *t)
{
    const struct act *o = &t->a.act;

    for (size_t i = 0; i < t->size; i++) {
        const size_t row = i / (size_t)t->n, e = i % (size_t)t->n;
        const double arg =
            (double)o->x[row * (size_t)t->ld + e] + (o->bias ? (double)o->bias[e] : 0);
        const double add = o->add ? (double)o->add[i] : 0;
        const struct exact x = exactly(o->kind, arg, o->beta ? (double)*o->beta : 1);
        const double by = factor_of(o->factor), f = by * x.f;
        t->out[0].bound[i] = fabs(by) * (x.f_bound + U * fabs(arg)) +
                             U * (2 * fabs(f) + fabs(add)) + 2 * U * fabs(f + add);
    }
}

/* ---- their gradients ------------------------------------------------------------------------- */

enum { ACT_GRAD_CASES = 8 * N_SPREADS * ACT_KINDS * OP_GRAD_SIZES };

static void act_grad_make(struct trial *t, int at)
{
    const bool large = at >= ACT_GRAD_CASES;
    const int mode = large ? 1 : pick(&at, 8), spread = large ? 0 : pick(&at, N_SPREADS);

    t->kind = large ? ACT_RELU : pick(&at, ACT_KINDS);
    set_size(t, large ? op_square : op_grad_sizes[at]);
    t->over = mode & 2;
    const size_t n = (size_t)t->n;
    const bool swish = t->kind == ACT_SWISH;
    t->ld = mode & 4 ? t->n + GAP : t->n;
    const size_t wide = (size_t)(t->rows * t->ld);
    float *x = operand(t, wide, "x", 0, spreads[spread]);
    float *d_y = operand(t, t->size, "d_y", 0, 1);
    within_range(t->kind, x, wide);
    for (size_t i = 0; t->kind == ACT_RELU && spread == 0 && i < wide; i++)
        x[i] = fmaxf(x[i], 0); /* its own output serves as well */
    t->a.act_grad = (struct act_grad){.kind = (enum act_kind)t->kind,
                                      .sums = scratch(t, n),
                                      .d_y = d_y,
                                      .x = t->kind == ACT_NONE ? NULL : x,
                                      .bias = mode & 1 ? operand(t, n, "a", 0, 1) : NULL,
                                      .beta = takes_beta(t->kind) ? &beta : NULL,
                                      .factor = mode & 4 ? &factor : NULL,
                                      .x_row = mode & 4 ? t->ld : 0,
                                      .rows = t->rows,
                                      .n = t->n};
    output(t, "d_x", t->size, d_y);
    if (swish || mode != 6) /* gradients of data alone go another way */
        output_sums(t, "d_bias", n);
    if (swish)
        output_sums(t, "d_beta", 1);
    snprintf(t->name, sizeof(t->name), "kind %d, %dx%d, spread %g, mode %d", t->kind, t->rows, t->n,
             (double)spreads[spread], mode);
}

RUN(act_grad, act_grad, o.d_x = out[0], o.d_y = t->in_place ? out[0] : o.d_y,
    o.d_bias = t->n_out > 1 ? out[1] : NULL, o.d_beta = t->n_out > 2 ? out[2] : NULL)

/* An element as `exactly` computes it; a column of `rows` of them rounds as often when it is
 * summed. d beta = d_y t^2 s (1-s), a slope of its own. */
static void act_grad_bounds(struct trial *t)
{
    const struct act_grad *o = &t->a.act_grad;
    double of_beta = 0;

    for (int e = 0; e < t->n; e++) {
        double sum = 0;
        for (int i = 0; i < t->rows; i++) {
            const int at = i * t->n + e;
            const double d_y = (double)o->d_y[at] * factor_of(o->factor);
            const double arg =
                (o->x ? (double)o->x[i * t->ld + e] : 0) + (o->bias ? (double)o->bias[e] : 0);
            const struct exact x = exactly(o->kind, arg, o->beta ? (double)beta : 1);
            const double size = fabs(d_y * x.slope);
            const double bound = fabs(d_y) * x.slope_bound + 4 * U * size;
            t->out[0].bound[at] = bound;
            sum += bound + (t->rows + 2) * U * size;
            if (o->kind == ACT_SWISH) {
                const double z = (double)beta * arg,
                             part = d_y * arg * arg / (2 + exp(z) + exp(-z));
                of_beta += U * (6 * fabs(z) + 61 + t->rows + t->n) * fabs(part) + SMALLEST;
            }
        }
        if (t->n_out > 1)
            t->out[1].bound[e] = sum_bound(sum, (double)t->out[1].want[e]);
    }
    if (o->kind == ACT_SWISH)
        t->out[2].bound[0] = sum_bound(of_beta, (double)t->out[2].want[0]);
}

/* ---- gated units ----------------------------------------------------------------------------- */

/* With and without biases; and the clamped units of SWISH. */
enum { GLU_PLAIN = 2 * N_SPREADS * ACT_KINDS * OP_SIZES };
enum { GLU_CASES = GLU_PLAIN + 2 * N_SPREADS * OP_SIZES };
static const float clamp_beta = 1.702f, clamp_limit = 1.25f;

/* a and b are columns of one product with gaps. */
static void glu_make(struct trial *t, int at)
{
    const bool large = at >= GLU_CASES, clamped = !large && at >= GLU_PLAIN;
    at -= clamped ? GLU_PLAIN : 0;
    const bool bias = large || pick(&at, 2);
    const int spread = large ? 0 : pick(&at, N_SPREADS);

    t->kind = large || clamped ? ACT_SWISH : pick(&at, ACT_KINDS);
    set_size(t, large ? op_square : op_sizes[at]);
    t->ld = 2 * t->n + 3;
    float *pre = operand(t, (size_t)(t->rows * t->ld), "pre", 0, spreads[spread]);
    within_range(t->kind, pre, (size_t)(t->rows * t->ld));
    if (t->size > 1)
        pre[t->rows / 2 * t->ld + t->n / 2] = NAN;
    t->a.glu = (struct glu){.kind = (enum act_kind)t->kind,
                            .a = pre,
                            .b = pre + t->n + 1,
                            .a_bias = bias ? operand(t, (size_t)t->n, "a", 0, 1) : NULL,
                            .b_bias = bias ? operand(t, (size_t)t->n, "b", 0, 1) : NULL,
                            .beta = clamped ? clamp_beta : 0,
                            .limit = clamped ? clamp_limit : 0,
                            .ld = t->ld,
                            .rows = t->rows,
                            .n = t->n};
    output(t, "y", t->size, NULL);
    snprintf(t->name, sizeof(t->name), "kind %d, %dx%d, spread %g%s%s", t->kind, t->rows, t->n,
             (double)spreads[spread], bias ? ", biases" : "", clamped ? ", clamped" : "");
}

/* Operands within the limit; that of the other half is rounded once more as 1 is added. */
static double kept(double x, double least, double most)
{
    return x > most ? most : x < least ? least : x;
}

RUN(glu, glu, o.y = out[0])

static void glu_bounds(struct trial *t)
{
    const struct glu *o = &t->a.glu;

    for (int i = 0; i < t->rows; i++)
        for (int e = 0; e < t->n; e++) {
            const double a = (double)o->a[i * o->ld + e] + (o->a_bias ? (double)o->a_bias[e] : 0);
            const double v = (double)o->b[i * o->ld + e] + (o->b_bias ? (double)o->b_bias[e] : 0);
            const double limit = (double)o->limit;
            const double gate = limit != 0 ? kept(a, -INFINITY, limit) : a;
            const double other = limit != 0 ? kept(v, -limit, limit) + 1 : v;
            const struct exact x = exactly(o->kind, gate, (double)glu_beta(o->beta));
            const double off = limit != 0 ? 2 * U * (fabs(v) + 1) : 0; /* of b + b_bias + 1 */
            t->out[0].bound[i * t->n + e] = (x.f_bound + U * fabs(a)) * fabs(other) +
                                            5 * U * fabs(x.f * other) + off * fabs(x.f);
        }
}

/* ---- their gradients ------------------------------------------------------------------------- */

enum { GLU_GRAD_PLAIN = 4 * N_SPREADS * ACT_KINDS * OP_GRAD_SIZES };
enum { GLU_GRAD_CASES = GLU_GRAD_PLAIN + 4 * N_SPREADS * OP_GRAD_SIZES };

/* a and b are columns of one matrix with gaps, and so are their gradients. */
static void glu_grad_make(struct trial *t, int at)
{
    const bool large = at >= GLU_GRAD_CASES, clamped = !large && at >= GLU_GRAD_PLAIN;
    at -= clamped ? GLU_GRAD_PLAIN : 0;
    const int mode = large ? 1 : pick(&at, 4), spread = large ? 0 : pick(&at, N_SPREADS);

    t->kind = large || clamped ? ACT_SWISH : pick(&at, ACT_KINDS);
    set_size(t, large ? op_square : op_grad_sizes[at]);
    t->over = mode & 2;
    t->ld = 2 * t->n + 3;
    const size_t n = (size_t)t->n, wide = (size_t)(t->rows * t->ld);
    const bool bias = mode & 1;
    float *pre = operand(t, wide, "pre", 0, spreads[spread]);
    within_range(t->kind, pre, wide);
    t->a.glu_grad = (struct glu_grad){.kind = (enum act_kind)t->kind,
                                      .d_y = operand(t, t->size, "d_y", 0, 1),
                                      .a = pre,
                                      .b = pre + n + 1,
                                      .a_bias = bias ? operand(t, n, "a", 0, 1) : NULL,
                                      .b_bias = bias ? operand(t, n, "b", 0, 1) : NULL,
                                      .beta = clamped ? clamp_beta : 0,
                                      .limit = clamped ? clamp_limit : 0,
                                      .ld = t->ld,
                                      .rows = t->rows,
                                      .n = t->n};
    output(t, "d_pre", wide, pre);
    if (bias) {
        output_sums(t, "d_a_bias", n);
        output_sums(t, "d_b_bias", n);
    }
    snprintf(t->name, sizeof(t->name), "kind %d, %dx%d, spread %g, mode %d%s", t->kind, t->rows,
             t->n, (double)spreads[spread], mode, clamped ? ", clamped" : "");
}

static void glu_grad_run(const struct engine *g, struct trial *t, float *const *out)
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
static void glu_grad_bounds(struct trial *t)
{
    const struct glu_grad *o = &t->a.glu_grad;

    for (int e = 0; e < t->n; e++) {
        double sum[2] = {0, 0};
        for (int i = 0; i < t->rows; i++) {
            const ptrdiff_t at[2] = {i * t->ld + e, i * t->ld + e + t->n + 1};
            const double d_y = (double)o->d_y[i * t->n + e];
            const double a = (double)o->a[at[0]] + (o->a_bias ? (double)o->a_bias[e] : 0);
            const double b = (double)o->a[at[1]] + (o->b_bias ? (double)o->b_bias[e] : 0);
            const double limit = (double)o->limit;
            const double gate = limit != 0 ? kept(a, -INFINITY, limit) : a;
            const double other = limit != 0 ? kept(b, -limit, limit) + 1 : b;
            const struct exact x = exactly(o->kind, gate, (double)glu_beta(o->beta));
            const double off = limit != 0 ? 2 * U * (fabs(b) + 1) : 0; /* of b + b_bias + 1 */
            const double size[2] = {fabs(d_y * other * x.slope), fabs(d_y * x.f)};
            const double bound[2] = {fabs(d_y * other) * x.slope_bound + 5 * U * size[0] +
                                         off * fabs(d_y * x.slope),
                                     fabs(d_y) * (x.f_bound + U * fabs(x.f)) + 3 * U * size[1]};
            for (int k = 0; k < 2; k++) {
                t->out[0].bound[at[k]] = bound[k];
                sum[k] += bound[k] + (t->rows + 2) * U * size[k];
            }
        }
        for (int k = 0; o->a_bias && k < 2; k++)
            t->out[1 + k].bound[e] = sum_bound(sum[k], (double)t->out[1 + k].want[e]);
    }
}

/* ---- the rows -------------------------------------------------------------------------------- */

const struct op_row op_acts[ACT_ROWS] = {
    {"act", OP_act, ACT_CASES, act_make, act_run, act_bounds,
     .timing = {{"512x512 relu", TIMED_ELEMENTS(512 * 512)}}},
    {"glu", OP_glu, GLU_CASES, glu_make, glu_run, glu_bounds,
     .timing = {{"512x512 swish", TIMED_ELEMENTS(512 * 512)}}},
    {"act_grad", OP_act_grad, ACT_GRAD_CASES, act_grad_make, act_grad_run, act_grad_bounds,
     .same_bits = true, .timing = {{"512x512 relu", TIMED_ELEMENTS(512 * 512)}}},
    {"glu_grad", OP_glu_grad, GLU_GRAD_CASES, glu_grad_make, glu_grad_run, glu_grad_bounds,
     .same_bits = true, .timing = {{"512x512 swish", TIMED_ELEMENTS(512 * 512)}}},
};

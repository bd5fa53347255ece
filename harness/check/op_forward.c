/* SPDX-License-Identifier: MIT
 *
 * Cases of the row operations, forward: awkward sizes, rows with gaps, results over operands,
 * hostile values. */
#include "op_inner.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const int sizes[][2] = {{1, 1},   {3, 2},   {5, 7},   {2, 8},    {3, 9},
                               {33, 15}, {3, 16},  {9, 17},  {65, 17},  {3, 31},
                               {3, 33},  {31, 37}, {5, 130}, {33, 1003}}; /* rows, n */
enum { N_SIZES = ARRAY_LEN(sizes) };
static const int square[2] = {512, 512};

/* ---- softmax ------------------------------------------------------------------------------ */

static const int columns[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 37, 1000};
static const int row_counts[] = {1, 2, 5, 33, 67};

static const struct softmax_case {
    int lo, hi, lo_slope, hi_slope, terms, n_rel, shift; /* terms: 1 rel, 2 bias */
    float sd;
} softmax_cases[] = {
    {0, 100000, 0, 0, 0, 0, 0, 1.0f},     {0, 1, 0, 1, 0, 0, 0, 3.0f},
    {-3, 2, 1, 1, 0, 0, 0, 3.0f},         {5, 5, 0, 0, 0, 0, 0, 1.0f},
    {9, 3, 0, 1, 0, 0, 0, 1.0f},          {0, 100000, 0, 0, 0, 0, 0, 1e4f},
    {0, 100000, 0, 0, 0, 0, 0, 1e-40f},   {0, 20, 0, 1, 1, 40, 12, 1.0f},
    {0, 20, 0, 1, 2, 40, 12, 1.0f},       {0, 100000, 0, 0, 3, 5, -11, 2.0f},
    {0, 100000, 0, 0, 3, 9, 3, 2.0f},     {0, 100000, 0, 0, 3, 1, 0, 2.0f},
    {3, 900, 1, 1, 3, 64, -500, 2.0f},    {0, 100000, 0, 0, 3, 7, 5000, 2.0f},
    {0, 100000, 0, 0, 3, 7, -5000, 2.0f},
};

enum { NICE, EQUAL, SOME_MINUS_INF, ALL_MINUS_INF, A_NAN, HOSTILE };
enum {
    SOFTMAX_CASES = HOSTILE * ARRAY_LEN(softmax_cases) * ARRAY_LEN(row_counts) * ARRAY_LEN(columns)
};

static void make_hostile(int kind, float *s, ptrdiff_t ld, int rows, int n)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < n; j++) {
            float *x = s + i * ld + j;
            if (kind == EQUAL)
                *x = 3.25f;
            if (kind == ALL_MINUS_INF || (kind == SOME_MINUS_INF && (i + j) % 3 == 0))
                *x = -INFINITY;
            if (kind == A_NAN && i == rows / 2 && j == n / 2)
                *x = NAN;
        }
}

static void softmax_make(struct trial *t, int at)
{
    static const struct softmax_case causal = {.hi = 1, .hi_slope = 1, .sd = 1};
    const bool large = at >= SOFTMAX_CASES;
    const int hostile = large ? NICE : pick(&at, HOSTILE), which = at;
    const struct softmax_case *c =
        large ? &causal : &softmax_cases[pick(&at, ARRAY_LEN(softmax_cases))];
    const int rows = large ? 512 : row_counts[pick(&at, ARRAY_LEN(row_counts))];
    const int n = large ? 512 : columns[at], rel_ld = c->n_rel + 3;

    set_size(t, (const int[2]){rows, n});
    t->ld = large ? n : n + n % 3 * 5;
    t->kind = c->terms;
    float *s = constant(t, (size_t)(rows * t->ld), GUARD_VALUE);
    for (int i = 0; i < rows; i++)
        rng_normal(s + i * t->ld, (size_t)n, SEED, (uint64_t)i, 0, c->sd);
    make_hostile(hostile, s, t->ld, rows, n);
    float *rel = operand(t, (size_t)(rows * rel_ld), "rel", 0, c->sd);
    float *bias = operand(t, (size_t)c->n_rel + 1, "bias", 0, 1);
    t->scale = largest(s, (size_t)(rows * t->ld)) + largest(rel, (size_t)(rows * rel_ld)) +
               largest(bias, (size_t)c->n_rel + 1);
    t->a.softmax = (struct softmax){.ld = t->ld,
                                    .rows = rows,
                                    .cols = n,
                                    .lo = c->lo,
                                    .hi = c->hi,
                                    .lo_slope = c->lo_slope,
                                    .hi_slope = c->hi_slope,
                                    .rel = c->terms & 1 ? rel : NULL,
                                    .rel_ld = rel_ld,
                                    .bias = c->terms & 2 ? bias : NULL,
                                    .n_rel = c->n_rel,
                                    .shift = c->shift};
    output(t, "s", (size_t)(rows * t->ld), s);
    output(t, "lse", (size_t)rows, NULL);
    snprintf(t->what, sizeof(t->what), "case %d, %dx%d, hostile %d",
             large ? -1 : which % (int)ARRAY_LEN(softmax_cases), rows, n, hostile);
}

static void softmax_run(const struct engine *g, struct trial *t, float *const *out)
{
    struct softmax o = t->a.softmax;

    o.s = out[0];
    o.lse = out[1];
    o.threads = g->threads;
    g->ops.softmax(&o);
}

/* Scores carry one rounded addition of numbers up to S for each term, and one more when the
 * reference stores their sum; the subtraction of the maximum rounds once, and whatever is more than
 * 104 below it is 0 either way; exp adds 4 U. Both numerator and denominator have that, the sum n U
 * more, division and scaling 2 U, the reference's store U. */
static void softmax_bounds(struct trial *t)
{
    const int terms = t->kind ? (t->kind & 1) + (t->kind >> 1) + 1 : 0;
    const double S = t->scale;
    const double bound = U * (2 * (terms * S + fmin(2 * S, 104) + 4) + t->n + 8);

    for (int i = 0; i < t->rows; i++) {
        for (int j = 0; j < t->n; j++)
            t->out[0].bound[i * t->ld + j] = bound * (double)t->out[0].want[i * t->ld + j];
        t->out[1].bound[i] = bound + U * (4 * fabs((double)t->out[1].want[i]) + 4);
    }
}

/* ---- norm --------------------------------------------------------------------------------- */

enum { NORM_MODES = 16, NORM_CASES = NORM_MODES * NORM_KIND_COUNT * N_SIZES };

/* Rows that a norm could divide by nothing, equal elements, all zero, shorter than eps; and a NaN,
 * which takes all of its row. */
static void hostile_rows(float *x, int rows, int n)
{
    for (int i = 0; i < rows; i++)
        for (int e = 0; e < n; e++) {
            float *at = x + i * n + e;
            *at = i % 5 == 0 ? 0.7f : i % 5 == 1 ? 0 : i % 5 == 2 ? *at * 1e-8f : *at;
            if (i % 5 == 3 && e == n / 2)
                *at = NAN;
        }
}

static void norm_make(struct trial *t, int at)
{
    static const float means[] = {0, 30, 1e4f, 0}; /* the last hostile */
    const bool large = at >= NORM_CASES;
    const int mode = large ? 0 : pick(&at, NORM_MODES), rows_of = mode / 4;

    t->kind = large ? NORM_LAYER : pick(&at, NORM_KIND_COUNT);
    set_size(t, large ? square : sizes[at]);
    if (t->kind == NORM_UNBIASED && t->n == 1) /* is not defined */
        t->kind = NORM_LAYER;
    t->over = mode & 2;
    float *x = operand(t, t->size, "x", means[rows_of], 1);
    float *bias = operand(t, (size_t)t->n, "bias", 0, 1);
    if (rows_of == 3 && t->n <= 130) /* the bound leaves out how often longer sums round */
        hostile_rows(x, t->rows, t->n);
    t->a.norm = (struct norm){.kind = (enum norm_kind)t->kind,
                              .x = x,
                              .add = mode & 1 ? operand(t, t->size, "add", 0, 1) : NULL,
                              .weight = operand(t, (size_t)t->n, "weight", 1, 0.5f),
                              .bias = norm_centred((enum norm_kind)t->kind) ? bias : NULL,
                              .rows = t->rows,
                              .n = t->n,
                              .eps = 1e-5f};
    output(t, "y", t->size, x);
    snprintf(t->what, sizeof(t->what), "kind %d, %dx%d, mode %d", t->kind, t->rows, t->n, mode);
}

static void norm_run(const struct engine *g, struct trial *t, float *const *out)
{
    struct norm o = t->a.norm;

    o.y = out[0];
    o.x = t->in_place ? out[0] : o.x;
    o.threads = g->threads;
    g->ops.norm(&o);
}

static void norm_bounds(struct trial *t)
{
    for (int i = 0; i < t->rows; i++) {
        const struct moments m = moments_of(&t->a.norm, i);
        for (int e = 0; e < t->n; e++) {
            const int at = i * t->n + e;
            t->out[0].bound[at] = norm_bound(&t->a.norm, &m, (double)t->out[0].want[at], e);
        }
    }
}

/* ---- activations -------------------------------------------------------------------------- */

static const float spreads[] = {1, 1e-3f, 8, 100};
enum { N_SPREADS = ARRAY_LEN(spreads), ACT_MODES = 8 };
enum { ACT_SIZED = ACT_MODES * N_SPREADS * ACT_KINDS * N_SIZES, ACT_CASES = ACT_SIZED + ACT_KINDS };

/* All of the curve, step by step: polynomials have no place where they are worse than they say. */
static void everywhere(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = 16.0f * (2 * (float)i / (float)n - 1);
    x[0] = -1e9f, x[1] = 1e9f, x[2] = -0.0f, x[3] = 0, x[4] = NAN;
}

static void act_make(struct trial *t, int at)
{
    static const int curve[2] = {64, 1024};
    static const float beta = 1.375f;
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
    set_size(t, large ? square : whole ? curve : sizes[at]);
    t->over = mode & 4;
    float *x = operand(t, t->size, "x", 0, spreads[spread]);
    if (whole)
        everywhere(x, t->size);
    else if (t->size > 1)
        x[t->size / 2] = NAN;
    t->a.act = (struct act){.kind = (enum act_kind)t->kind,
                            .x = x,
                            .bias = mode & 1 ? operand(t, (size_t)t->n, "bias", 0, 1) : NULL,
                            .add = mode & 2 ? operand(t, t->size, "add", 0, 1) : NULL,
                            .beta = t->kind == ACT_SWISH ? &beta : NULL,
                            .rows = t->rows,
                            .n = t->n};
    output(t, "y", t->size, x);
    snprintf(t->what, sizeof(t->what), "kind %d, %dx%d, spread %g, mode %d", t->kind, t->rows, t->n,
             (double)spreads[spread], mode);
}

static void act_run(const struct engine *g, struct trial *t, float *const *out)
{
    struct act o = t->a.act;

    o.y = out[0];
    o.x = t->in_place ? out[0] : o.x;
    o.threads = g->threads;
    g->ops.act(&o);
}

/* The argument is rounded once, then f, then f + add; the reference stores it once. */
static void act_bounds(struct trial *t)
{
    const struct act *o = &t->a.act;

    for (size_t i = 0; i < t->size; i++) {
        const double arg = (double)o->x[i] + (o->bias ? (double)o->bias[i % (size_t)t->n] : 0);
        const double add = o->add ? (double)o->add[i] : 0;
        const struct exact x = exactly(o->kind, arg, o->beta ? (double)*o->beta : 1);
        t->out[0].bound[i] =
            x.f_bound + U * fabs(arg) + U * (fabs(x.f) + fabs(add)) + 2 * U * fabs(x.f + add);
    }
}

/* ---- gated units -------------------------------------------------------------------------- */

enum { GLU_CASES = 2 * N_SPREADS * ACT_KINDS * N_SIZES };

/* a and b are columns of one product with gaps. */
static void glu_make(struct trial *t, int at)
{
    const bool large = at >= GLU_CASES;
    const bool bias = large || pick(&at, 2);
    const int spread = large ? 0 : pick(&at, N_SPREADS);

    t->kind = large ? ACT_SWISH : pick(&at, ACT_KINDS);
    set_size(t, large ? square : sizes[at]);
    t->ld = 2 * t->n + 3;
    float *pre = operand(t, (size_t)(t->rows * t->ld), "pre", 0, spreads[spread]);
    if (t->size > 1)
        pre[t->rows / 2 * t->ld + t->n / 2] = NAN;
    t->a.glu = (struct glu){.kind = (enum act_kind)t->kind,
                            .a = pre,
                            .b = pre + t->n + 1,
                            .a_bias = bias ? operand(t, (size_t)t->n, "a", 0, 1) : NULL,
                            .b_bias = bias ? operand(t, (size_t)t->n, "b", 0, 1) : NULL,
                            .ld = t->ld,
                            .rows = t->rows,
                            .n = t->n};
    output(t, "y", t->size, NULL);
    snprintf(t->what, sizeof(t->what), "kind %d, %dx%d, spread %g%s", t->kind, t->rows, t->n,
             (double)spreads[spread], bias ? ", biases" : "");
}

static void glu_run(const struct engine *g, struct trial *t, float *const *out)
{
    struct glu o = t->a.glu;

    o.y = out[0];
    o.threads = g->threads;
    g->ops.glu(&o);
}

static void glu_bounds(struct trial *t)
{
    const struct glu *o = &t->a.glu;

    for (int i = 0; i < t->rows; i++)
        for (int e = 0; e < t->n; e++) {
            const double a = (double)o->a[i * o->ld + e] + (o->a_bias ? (double)o->a_bias[e] : 0);
            const double v = (double)o->b[i * o->ld + e] + (o->b_bias ? (double)o->b_bias[e] : 0);
            const struct exact x = exactly(o->kind, a, 1);
            t->out[0].bound[i * t->n + e] =
                (x.f_bound + U * fabs(a)) * fabs(v) + 5 * U * fabs(x.f * v);
        }
}

/* ---- gates -------------------------------------------------------------------------------- */

static const float gate_spreads[] = {1e-6f, 0.1f, 1.0f, 8.0f, 1000.0f};
enum { N_GATES = GATE_UPDATE + 1, GATE_SPREADS = ARRAY_LEN(gate_spreads) };
enum { GATE_CASES = 2 * GATE_SPREADS * N_GATES * N_SIZES };

static void gate_make(struct trial *t, int at)
{
    const bool large = at >= GATE_CASES;
    const int over = large ? 0 : pick(&at, 2), spread = large ? 2 : pick(&at, GATE_SPREADS);
    const float sd = gate_spreads[spread];

    t->kind = large ? GATE_UPDATE : pick(&at, N_GATES);
    set_size(t, large ? square : sizes[at]);
    t->over = over;
    t->ld = t->n + (large ? 0 : 3);
    t->mode = t->kind == GATE_SIGTANH && sd < 1; /* x = 0: only z tanh(c) remains */
    float *x = t->mode ? constant(t, t->size, 0) : operand(t, t->size, "x", 0, 1);
    float *a = operand(t, (size_t)(t->rows * t->ld), "a", 0, sd * 10);
    if (t->rows > 1)
        a[t->ld + t->n / 2] = NAN;
    t->a.gate = (struct gate_op){.kind = (enum gate_kind)t->kind,
                                 .x = x,
                                 .y = operand(t, t->size, "y", 0, 1),
                                 .a = a,
                                 .c = operand(t, (size_t)(t->rows * t->ld), "c", 0, sd),
                                 .b = operand(t, (size_t)t->n, "bias", 0, 1),
                                 .ld = t->ld,
                                 .rows = t->rows,
                                 .n = t->n};
    output(t, "out", t->size, x);
    snprintf(t->what, sizeof(t->what), "kind %d, %dx%d, spread %g%s", t->kind, t->rows, t->n,
             (double)sd, over ? ", in place" : "");
}

static void gate_run(const struct engine *g, struct trial *t, float *const *out)
{
    struct gate_op o = t->a.gate;

    o.out = out[0];
    o.x = t->in_place ? out[0] : o.x;
    o.threads = g->threads;
    g->ops.gate(&o);
}

/* A pre-activation a +- b is rounded once, |arg| U in the exponent, and the logistic adds 6 U (exp
 * 4, add, divide); tanh is good to 8 U; blending rounds at most four more times. All of it is
 * relative to |x| + |y|, with tanh(c) for y where the kind has it. RESET and, with x = 0, SIGTANH
 * show that the relative error also holds where sigma and tanh are tiny. */
static void gate_bounds(struct trial *t)
{
    const struct gate_op *o = &t->a.gate;
    const bool has_tanh = t->kind == GATE_SIGTANH || t->kind == GATE_UPDATE;

    for (int i = 0; i < t->rows; i++)
        for (int e = 0; e < t->n; e++) {
            const ptrdiff_t pre = i * t->ld + e, at = (ptrdiff_t)i * t->n + e;
            const double arg = fabs((double)o->a[pre]) + fabs((double)o->b[e]);
            const double second = has_tanh ? tanh((double)o->c[pre]) : (double)o->y[at];
            const double terms = fabs((double)o->x[at]) + fabs(second);
            const bool relative = t->kind == GATE_RESET || t->mode;
            const double of = relative ? fabs((double)t->out[0].want[at]) : terms;
            t->out[0].bound[at] = U * (arg + 18) * of + SMALLEST * terms;
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
    const bool first = mode & 1, lstm = t->kind == CELL_LSTM;
    t->over = mode & 4 && !first;
    float *state = operand(t, t->size, "state", 0, 1), *c = operand(t, t->size, "c", 0, 1);
    t->a.cell = (struct rnn_step){.kind = (enum rnn_cell_kind)t->kind,
                                  .x = operand(t, G * t->size, "x", 0, 1),
                                  .x_row = mode & 2 ? 0 : (ptrdiff_t)G * t->n,
                                  .h = first ? NULL : operand(t, G * t->size, "h", 0, 1),
                                  .b = operand(t, G * (size_t)t->n, "b", 0, 1),
                                  .state = first ? NULL : state,
                                  .c = first ? NULL : c,
                                  .rows = t->rows,
                                  .n = t->n};
    output(t, "out", t->size, state);
    if (lstm)
        output(t, "c_out", t->size, c);
    snprintf(t->what, sizeof(t->what), "%s, %dx%d, mode %d", rnn_cell_name[t->kind], t->rows, t->n,
             mode);
}

static void cell_run(const struct engine *g, struct trial *t, float *const *out)
{
    struct rnn_step o = t->a.cell;

    o.out = out[0];
    o.c_out = t->kind == CELL_LSTM ? out[1] : NULL;
    if (t->in_place) {
        o.state = out[0];
        o.c = t->kind == CELL_LSTM ? out[1] : o.c;
    }
    o.threads = g->threads;
    g->ops.cell(&o);
}

/* Sums of three numbers of size S are off by 3 U S, which no curve here makes larger; each curve
 * and product adds a few U of numbers below 1. S: four normal numbers, 16; 16 roundings, and the
 * reference's. */
static void cell_bounds(struct trial *t)
{
    for (int k = 0; k < t->n_out; k++)
        for (size_t i = 0; i < t->size; i++)
            t->out[k].bound[i] = 17 * U * 16;
}

/* ---- one key of attention without a softmax ----------------------------------------------- */

static const int widths[] = {1, 7, 8, 16, 17, 31, 48, 64, 65, 151};
enum { N_WIDTHS = ARRAY_LEN(widths), LINEAR_CASES = 2 * 4 * N_WIDTHS };

static void linear_make(struct trial *t, int at)
{
    const bool large = at >= LINEAR_CASES;
    const int over = large ? 0 : pick(&at, 2), queries = large ? 8 : pick(&at, 4);
    const int m = large ? 128 : widths[N_WIDTHS - 1 - at], d = large ? 64 : widths[at];
    const size_t rows = (size_t)queries, n = (size_t)(m * d);

    t->over = over;
    t->a.linear_step =
        (struct linear_step){.s0 = operand(t, n, "s", 0, 3),
                             .z0 = operand_positive(t, (size_t)m, "z"),
                             .k = operand_positive(t, (size_t)m, "k"),
                             .v = operand(t, (size_t)d, "v", 0, 1),
                             .q = queries ? operand_positive(t, rows * (size_t)m, "q") : NULL,
                             .eps = 0.5f,
                             .queries = queries,
                             .m = m,
                             .d = d};
    output(t, "s", n, t->a.linear_step.s0);
    output(t, "z", (size_t)m, t->a.linear_step.z0);
    output(t, "o", rows * (size_t)d, NULL);
    output(t, "den", rows, NULL);
    snprintf(t->what, sizeof(t->what), "%d queries, m %d, d %d%s", queries, m, d,
             over ? ", in place" : "");
}

static void linear_run(const struct engine *g, struct trial *t, float *const *out)
{
    struct linear_step o = t->a.linear_step;

    o.s = out[0];
    o.z = out[1];
    o.o = out[2];
    o.den = out[3];
    if (t->in_place) {
        o.s0 = out[0];
        o.z0 = out[1];
    }
    g->ops.linear_step(&o);
}

/* Both sums of a key are exact but for their rounding, 2 U with the product's, and the reference's.
 * Numerator and divisor are sums of m products of what was left. */
static void linear_bounds(struct trial *t)
{
    const struct linear_step *o = &t->a.linear_step;

    for (int x = 0; x < o->m; x++) {
        t->out[1].bound[x] = 3 * U * ((double)o->z0[x] + (double)o->k[x]);
        for (int e = 0; e < o->d; e++) {
            const int at = x * o->d + e;
            t->out[0].bound[at] =
                3 * U * (fabs((double)o->s0[at]) + fabs((double)o->k[x] * (double)o->v[e]));
        }
    }
    for (int i = 0; i < o->queries; i++) {
        const double den = (double)t->out[3].want[i];
        t->out[3].bound[i] = (o->m + 6) * U * den;
        for (int e = 0; e < o->d; e++) {
            double size = 0;
            for (int x = 0; x < o->m; x++)
                size += (double)o->q[i * o->m + x] * (fabs((double)o->s0[x * o->d + e]) +
                                                      fabs((double)o->k[x] * (double)o->v[e]));
            const int at = i * o->d + e;
            t->out[2].bound[at] =
                (o->m + 8) * U * (size / den + 2 * fabs((double)t->out[2].want[at]));
        }
    }
}

/* ---- negative log-likelihood -------------------------------------------------------------- */

static const float nll_spreads[] = {0.0f, 1.0f, 1e4f};
enum { NLL_CASES = 3 * ARRAY_LEN(row_counts) * ARRAY_LEN(columns), NLL_ROWS = 64 };

static void nll_make(struct trial *t, int at)
{
    const bool large = at >= NLL_CASES;
    const int spread = large ? 1 : pick(&at, 3);
    const int rows = large ? NLL_ROWS : min_int(row_counts[pick(&at, 5)], NLL_ROWS);
    const int n = large ? 256 : columns[at];

    set_size(t, (const int[2]){rows, n});
    float *x = operand(t, t->size, "logits", 2, nll_spreads[spread]);
    for (int i = 0; i < rows; i++)
        t->target[i] = i % 5 == 1 ? n - 1 : i % 5 == 2 ? n / 2 : i % 5 == 3 ? n / 3 : 0;
    if (rows > 1 && n > 2)
        x[n + 1] = -INFINITY;
    if (rows > 4)
        x[4 * n] = NAN;
    t->scale = 2 * largest(x, t->size);
    t->a.nll = (struct nll_op){.logits = x, .target = t->target, .rows = rows, .n = n};
    output(t, "nll", (size_t)rows, NULL);
    snprintf(t->what, sizeof(t->what), "%dx%d, spread %g", rows, n, (double)nll_spreads[spread]);
}

static void nll_run(const struct engine *g, struct trial *t, float *const *out)
{
    struct nll_op o = t->a.nll;

    o.nll = out[0];
    o.threads = g->threads;
    g->ops.nll(&o);
}

/* exp as in softmax_bounds, the sum, log, two additions */
static void nll_bounds(struct trial *t)
{
    for (int i = 0; i < t->rows; i++)
        t->out[0].bound[i] = U * (fmin(t->scale, 104) + t->n + 12 + 2 * t->scale);
}

/* ---- the rows ----------------------------------------------------------------------------- */

#define TIMED_ELEMENTS(n) "Gelem/s", 1e-9 * (n)

const struct op_row op_forward[FORWARD_ROWS] = {
    {"softmax", OP_softmax, SOFTMAX_CASES, softmax_make, softmax_run, softmax_bounds,
     .same_bits = true, .timing = {{"512 causal rows", TIMED_ELEMENTS(512 * 513 / 2)}}},
    {"norm", OP_norm, NORM_CASES, norm_make, norm_run, norm_bounds,
     .timing = {{"512x512", TIMED_ELEMENTS(512 * 512)}}},
    {"act", OP_act, ACT_CASES, act_make, act_run, act_bounds,
     .timing = {{"512x512 relu", TIMED_ELEMENTS(512 * 512)}}},
    {"glu", OP_glu, GLU_CASES, glu_make, glu_run, glu_bounds,
     .timing = {{"512x512 swish", TIMED_ELEMENTS(512 * 512)}}},
    {"gate", OP_gate, GATE_CASES, gate_make, gate_run, gate_bounds,
     .timing = {{"512x512 update", TIMED_ELEMENTS(512 * 512)}}},
    {"cell", OP_cell, CELL_CASES, cell_make, cell_run, cell_bounds, .same_bits = true,
     .timing = {{"512x512 lstm", TIMED_ELEMENTS(512 * 512)}}},
    {"linear_step", OP_linear_step, LINEAR_CASES, linear_make, linear_run, linear_bounds,
     .same_bits = true, .timing = {{"8 queries, 128x64", TIMED_ELEMENTS(9 * 128 * 64)}}},
    {"nll", OP_nll, NLL_CASES, nll_make, nll_run, nll_bounds,
     .timing = {{"64x256", TIMED_ELEMENTS(64 * 256)}}},
};

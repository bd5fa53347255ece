/* SPDX-License-Identifier: MIT
 *
 * Cases of softmax and negative log-likelihood, and of their gradients: awkward sizes, rows with
 * gaps, hostile values. */
#include "op_inner.h"

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
    const float *const scores = operand(t, t->size, "s", 0, c->sd);
    for (int i = 0; i < rows; i++)
        memcpy(s + i * t->ld, scores + i * n, (size_t)n * sizeof(*s));
    make_hostile(hostile, s, t->ld, rows, n);
    float *rel = operand(t, (size_t)rows * (size_t)rel_ld, "rel", 0, c->sd);
    float *bias = operand(t, (size_t)c->n_rel + 1, "bias", 0, 1);
    t->scale = largest(s, (size_t)(rows * t->ld)) + largest(rel, (size_t)rows * (size_t)rel_ld) +
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
    snprintf(t->name, sizeof(t->name), "case %d, %dx%d, hostile %d",
             large ? -1 : which % (int)ARRAY_LEN(softmax_cases), rows, n, hostile);
}

RUN(softmax, softmax, o.s = out[0], o.lse = out[1])

/* Scores carry one rounded addition of numbers up to S for each term, and one more when the
 * reference stores their sum; the subtraction of the maximum rounds once, and scores more than 104
 * below it give 0 either way; exp adds 4 U. Both numerator and denominator have that error, the sum
 * n U more, division and scaling 2 U, the reference's store U. */
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

/* ---- its gradient ---------------------------------------------------------------------------- */

enum { SOFTMAX_GRAD_CASES = 2 * OP_GRAD_SIZES };

static void softmax_grad_make(struct trial *t, int at)
{
    const bool large = at >= SOFTMAX_GRAD_CASES;
    const int rel = large ? 0 : pick(&at, 2);

    set_size(t, large ? op_square : op_grad_sizes[at]);
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
        .rel = rel ? operand(t, (size_t)t->rows * (size_t)n_rel, "rel", 0, 1) : NULL,
        .rel_ld = n_rel,
        .n_rel = n_rel,
        .shift = t->rows / 2 - t->n / 3};
    output(t, "d", t->size, operand(t, t->size, "d_out", 0, 1));
    snprintf(t->name, sizeof(t->name), "%dx%d%s", t->rows, t->n, rel ? ", rel" : "");
}

RUN(softmax_grad, softmax_grad, o.d = out[0])

/* Operands are below 5 in size, and a sum of n terms weighted by p is subtracted. */
static void weighted_bounds(struct trial *t)
{
    for (size_t i = 0; i < t->size; i++)
        t->out[0].bound[i] = U * (2 * t->n + 32) * 10;
}

/* ---- negative log-likelihood ----------------------------------------------------------------- */

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
    snprintf(t->name, sizeof(t->name), "%dx%d, spread %g", rows, n, (double)nll_spreads[spread]);
}

RUN(nll, nll_op, o.nll = out[0])

/* exp as in softmax_bounds, the sum, log, two additions */
static void nll_bounds(struct trial *t)
{
    for (int i = 0; i < t->rows; i++)
        t->out[0].bound[i] = U * (fmin(t->scale, 104) + t->n + 12 + 2 * t->scale);
}

/* ---- its gradient ---------------------------------------------------------------------------- */

enum { NLL_GRAD_CASES = 2 * 2 * OP_GRAD_SIZES };

static void nll_grad_make(struct trial *t, int at)
{
    const bool large = at >= NLL_GRAD_CASES;
    const int over = large ? 0 : pick(&at, 2), z = large ? 0 : pick(&at, 2);
    const int rows = large ? NLL_ROWS : min_int(op_grad_sizes[at][0], NLL_ROWS);

    set_size(t, (const int[2]){rows, large ? 256 : op_grad_sizes[at][1]});
    t->over = over;
    for (int i = 0; i < rows; i++)
        t->target[i] = (int32_t)(rng_u32(SEED, 7, (uint64_t)i) % (uint32_t)t->n);
    float *x = operand(t, t->size, "x", 0, 1);
    t->a.nll_grad = (struct nll_grad){.logits = x,
                                      .target = t->target,
                                      .scale = 0.25f,
                                      .z = z ? 0.25f : 0,
                                      .rows = rows,
                                      .n = t->n};
    output(t, "d_logits", t->size, x);
    snprintf(t->name, sizeof(t->name), "%dx%d%s%s", rows, t->n, z ? ", z" : "",
             over ? ", in place" : "");
}

RUN(nll_grad, nll_grad, o.d_logits = out[0], o.logits = t->in_place ? out[0] : o.logits)

/* ---- the rows -------------------------------------------------------------------------------- */

const struct op_row op_softmaxes[SOFTMAX_ROWS] = {
    {"softmax", OP_softmax, SOFTMAX_CASES, softmax_make, softmax_run, softmax_bounds,
     .same_bits = true, .timing = {{"512 causal rows", TIMED_ELEMENTS(512 * 513 / 2.0)}}},
    {"nll", OP_nll, NLL_CASES, nll_make, nll_run, nll_bounds,
     .timing = {{"64x256", TIMED_ELEMENTS(64 * 256)}}},
    {"softmax_grad", OP_softmax_grad, SOFTMAX_GRAD_CASES, softmax_grad_make, softmax_grad_run,
     weighted_bounds, .same_bits = true, .timing = {{"512x512", TIMED_ELEMENTS(512 * 512)}}},
    {"nll_grad", OP_nll_grad, NLL_GRAD_CASES, nll_grad_make, nll_grad_run, weighted_bounds,
     .same_bits = true, .timing = {{"64x256", TIMED_ELEMENTS(64 * 256)}}},
};

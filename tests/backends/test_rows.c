/* SPDX-License-Identifier: MIT
 *
 * Every backend's own row operations against the reference's, on awkward sizes and hostile values.
 * Each test states the bound it uses, derived from the arithmetic in units of U = 2^-24, half an
 * ulp of 1: one rounded operation is off by U relative. Vector exp is good to 2 ulp, 4 U. Outputs
 * are surrounded by guard words, and rows' gaps count as guard words too. */
#include "tests/support/guarded.h"
#include "variants/backends/backend.h"

#include <criterion/parameterized.h>
#include <string.h>

static const int sizes[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 37, 1000};
static const int row_counts[] = {1, 2, 5, 33};

/* ---- which backends ----------------------------------------------------------------------- */

/* Criterion copies parameters into other processes: an index, no pointers. */
struct who {
    int backend;
};
static const struct backend *subject(const struct who *w)
{
    const struct backend *b = backends[w->backend];

    if (b->needs > cpu_isa())
        cr_skip_test("%s needs %s", b->name, isa_needs[b->needs]);
    return b;
}

static struct criterion_test_params with_own_rows(void)
{
    static struct who list[16];
    size_t n = 0;

    for (int i = 0; backends[i] && n < ARRAY_LEN(list); i++)
        if (backends[i] != &backend_ref && backends[i]->ops.softmax)
            list[n++] = (struct who){i};
    return cr_make_param_array(struct who, list, n);
}

/* ---- softmax ------------------------------------------------------------------------------ */

struct softmax_case {
    int lo, hi, lo_slope, hi_slope, terms, n_rel, shift; /* terms: 1 rel, 2 bias */
    float sd;
};
static const struct softmax_case softmax_cases[] = {
    {0, 100000, 0, 0, 0, 0, 0, 1.0f},     {0, 1, 0, 1, 0, 0, 0, 3.0f},
    {-3, 2, 1, 1, 0, 0, 0, 3.0f},         {5, 5, 0, 0, 0, 0, 0, 1.0f},
    {9, 3, 0, 1, 0, 0, 0, 1.0f},          {0, 100000, 0, 0, 0, 0, 0, 1e4f},
    {0, 100000, 0, 0, 0, 0, 0, 1e-40f},   {0, 20, 0, 1, 1, 40, 12, 1.0f},
    {0, 20, 0, 1, 2, 40, 12, 1.0f},       {0, 100000, 0, 0, 3, 5, -11, 2.0f},
    {0, 100000, 0, 0, 3, 9, 3, 2.0f},     {0, 100000, 0, 0, 3, 1, 0, 2.0f},
    {3, 900, 1, 1, 3, 64, -500, 2.0f},    {0, 100000, 0, 0, 3, 7, 5000, 2.0f},
    {0, 100000, 0, 0, 3, 7, -5000, 2.0f},
};

/* Scores carry one rounded addition of numbers up to S for each term, and one more when the
 * reference stores their sum; the subtraction of the maximum rounds once, and whatever is more than
 * 104 below it is 0 either way; exp adds 4 U. Both numerator and denominator have that, the sum n U
 * more, division and scaling 2 U, the reference's store U. */
static double softmax_bound(const struct softmax_case *t, int n, double S)
{
    const int terms = t->terms ? (t->terms & 1) + (t->terms >> 1) + 1 : 0;
    return U * (2 * (terms * S + fmin(2 * S, 104) + 4) + n + 8);
}

static double max_abs(const float *p, size_t n)
{
    double m = 0;

    for (size_t i = 0; i < n; i++)
        if (isfinite(p[i]))
            m = fmax(m, fabs((double)p[i]));
    return m;
}

enum hostile { NICE, EQUAL, SOME_MINUS_INF, ALL_MINUS_INF, A_NAN, HOSTILE_COUNT };

static void make_hostile(enum hostile kind, float *s, ptrdiff_t ld, int rows, int n)
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

static double softmax_error(const struct backend *b, const struct softmax_case *t, int rows, int n,
                            int gap, enum hostile kind)
{
    const ptrdiff_t ld = n + gap;
    const size_t size = (size_t)rows * (size_t)ld;
    float *rel = normal((size_t)rows * (size_t)(t->n_rel + 3), "rel", 0, t->sd);
    float *bias = normal((size_t)t->n_rel + 1, "bias", 0, 1);
    float *got = guarded(size), *want = guarded(size);
    float *got_lse = guarded((size_t)rows), *want_lse = guarded((size_t)rows);
    double worst = 0, S = 0;

    for (int i = 0; i < rows; i++)
        rng_normal(got + i * ld, (size_t)n, SEED, (uint64_t)i, 0, t->sd);
    make_hostile(kind, got, ld, rows, n);
    for (int i = 0; i < rows; i++)
        S = fmax(S, max_abs(got + i * ld, (size_t)n));
    S += max_abs(rel, (size_t)(rows * (t->n_rel + 3))) + max_abs(bias, (size_t)t->n_rel + 1);
    memcpy(want, got, size * sizeof(*got));
    struct softmax o = {.s = got,
                        .ld = ld,
                        .rows = rows,
                        .cols = n,
                        .lo = t->lo,
                        .hi = t->hi,
                        .lo_slope = t->lo_slope,
                        .hi_slope = t->hi_slope,
                        .rel = t->terms & 1 ? rel : NULL,
                        .rel_ld = t->n_rel + 3,
                        .bias = t->terms & 2 ? bias : NULL,
                        .n_rel = t->n_rel,
                        .shift = t->shift,
                        .lse = got_lse,
                        .threads = 1};
    b->ops.softmax(&o);
    o.s = want;
    o.lse = want_lse;
    backend_ref.ops.softmax(&o);

    const double bound = softmax_bound(t, n, S);
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < ld; j++) {
            const double w = want[i * ld + j];
            const double e = j < n ? bound * w : 0; /* gaps are not touched */
            worst = fmax(worst, in_bounds(got[i * ld + j], w, e));
        }
        worst = fmax(worst, in_bounds(got_lse[i], want_lse[i],
                                      bound + U * (4 * fabs((double)want_lse[i]) + 4)));
    }
    cr_expect(guards_intact(got, size) && guards_intact(got_lse, (size_t)rows));
    release(rel), release(bias), release(got), release(want), release(got_lse), release(want_lse);
    return worst;
}

ParameterizedTestParameters(rows, softmax) { return with_own_rows(); }
ParameterizedTest(struct who *w, rows, softmax)
{
    const struct backend *b = subject(w);

    for (size_t k = 0; k < ARRAY_LEN(softmax_cases); k++)
        for (size_t r = 0; r < ARRAY_LEN(row_counts); r++)
            for (size_t c = 0; c < ARRAY_LEN(sizes); c++)
                for (enum hostile kind = 0; kind < HOSTILE_COUNT; kind++) {
                    const double e = softmax_error(b, &softmax_cases[k], row_counts[r], sizes[c],
                                                   (int)(c % 3) * 5, kind);
                    cr_assert_lt(e, 1.0, "%s: case %zu, %d x %d, hostile %d: %.2f x its bound",
                                 b->name, k, row_counts[r], sizes[c], (int)kind, e);
                }
}

/* ---- norm --------------------------------------------------------------------------------- */

/* T is the largest |x + add|, D the largest deviation, s the root. A deviation is off by the
 * rounding of x + add, twice (its own and the mean's), and by the sums: dd = U (2 T + (n+4) D). The
 * root's relative error is dd/s from the deviations, (n+3)/2 U from its sum, 3 U from the rest. */
static double norm_bound(const struct norm *o, int i, const float *want, int j)
{
    const ptrdiff_t at = (ptrdiff_t)i * o->n;
    double mean = 0, var = 0, T = 0, D = 0;

    for (int k = 0; k < o->n; k++) {
        const double t = (double)o->x[at + k] + (o->add ? (double)o->add[at + k] : 0.0);
        mean += t / o->n;
        T = fmax(T, fabs(t));
    }
    for (int k = 0; k < o->n; k++) {
        const double d = (double)o->x[at + k] + (o->add ? (double)o->add[at + k] : 0.0) - mean;
        var += d * d / o->n;
        D = fmax(D, fabs(d));
    }
    const double s = sqrt(var + (double)o->eps), dd = U * (2 * T + (o->n + 4) * D);
    const double root = dd / s + U * ((o->n + 3) / 2.0 + 3);
    return fabs((double)o->weight[j]) / s * (dd + D * (root + 3 * U)) +
           2 * U * (fabs((double)want[at + j]) + fabs((double)o->bias[j]));
}

static double norm_error(const struct backend *b, int rows, int n, float mean, bool add,
                         bool in_place)
{
    const size_t size = (size_t)rows * (size_t)n;
    float *x = normal(size, "x", mean, 1), *plus = normal(size, "add", 0, 1);
    float *weight = normal((size_t)n, "weight", 1, 1), *bias = normal((size_t)n, "bias", 0, 1);
    float *got = guarded(size), *want = guarded(size);
    double worst = 0;

    memcpy(got, x, size * sizeof(*x));
    struct norm o = {.y = want,
                     .x = x,
                     .add = add ? plus : NULL,
                     .weight = weight,
                     .bias = bias,
                     .rows = rows,
                     .n = n,
                     .eps = 1e-5f,
                     .threads = 1};
    backend_ref.ops.norm(&o);
    struct norm mine = o;
    mine.y = got;
    mine.x = in_place ? got : x;
    b->ops.norm(&mine);
    for (int i = 0; i < rows; i++) {
        const double step = norm_bound(&o, i, want, 0);
        cr_assert(step >= 0);
        for (int j = 0; j < n; j++) {
            const ptrdiff_t at = (ptrdiff_t)i * n + j;
            if (n <= 37 || j % 97 == 0) /* the bound costs n itself */
                worst = fmax(worst, in_bounds(got[at], want[at], norm_bound(&o, i, want, j)));
        }
    }
    cr_expect(guards_intact(got, size));
    release(x), release(plus), release(weight), release(bias), release(got), release(want);
    return worst;
}

ParameterizedTestParameters(rows, norm) { return with_own_rows(); }
ParameterizedTest(struct who *w, rows, norm)
{
    const struct backend *b = subject(w);

    for (size_t c = 0; c < ARRAY_LEN(sizes); c++)
        for (int mode = 0; mode < 12; mode++) {
            const float mean = mode / 4 == 0 ? 0.0f : mode / 4 == 1 ? 30.0f : 1e4f;
            const double e = norm_error(b, 3, sizes[c], mean, mode & 1, mode & 2);
            cr_assert_lt(e, 1.0, "%s: n = %d, mode %d: %.2f x its bound", b->name, sizes[c], mode,
                         e);
        }
}

/* ---- act, gate, nll ----------------------------------------------------------------------- */

ParameterizedTestParameters(rows, act) { return with_own_rows(); }
ParameterizedTest(struct who *w, rows, act)
{
    const struct backend *b = subject(w);

    for (size_t c = 0; c < ARRAY_LEN(sizes); c++)
        for (int mode = 0; mode < 8; mode++) {
            const int n = sizes[c], rows = 3;
            const size_t size = (size_t)(rows * n);
            float *x = normal(size, "x", 0, 1), *add = normal(size, "add", 0, 1);
            float *bias = normal((size_t)n, "bias", 0, 1);
            float *got = guarded(size), *want = guarded(size);
            x[size / 2] = NAN;
            struct act o = {.kind = mode & 4 ? ACT_RELU : ACT_NONE,
                            .y = got,
                            .x = x,
                            .bias = mode & 1 ? bias : NULL,
                            .add = mode & 2 ? add : NULL,
                            .rows = rows,
                            .n = n,
                            .threads = 1};
            b->ops.act(&o);
            o.y = want;
            backend_ref.ops.act(&o);
            for (size_t i = 0; i < size; i++) {
                /* two rounded additions and the reference's store */
                const double size_of_terms =
                    fabs((double)x[i]) + fabs((double)bias[i % (size_t)n]) + fabs((double)add[i]);
                const double e = in_bounds(got[i], want[i], 3 * U * size_of_terms);
                cr_assert_lt(e, 1.0, "%s: n = %d, mode %d, element %zu: %g, not %g", b->name, n,
                             mode, i, (double)got[i], (double)want[i]);
            }
            cr_expect(guards_intact(got, size));
            release(x), release(add), release(bias), release(got), release(want);
        }
}

/* A pre-activation a +- b is rounded once, |arg| U in the exponent, and the logistic adds 6 U (exp
 * 4, add, divide); tanh is good to 8 U; blending rounds at most four more times. All of it is
 * relative to |x| + |y|, with tanh(c) for y where the kind has it. RESET and, with x = 0, SIGTANH
 * show that the relative error also holds where sigma and tanh are tiny. */
static double gate_error(const struct backend *b, enum gate_kind kind, int n, float sd)
{
    const int rows = 3, ld = n + 3; /* of a and c */
    const size_t size = (size_t)(rows * n), wide = (size_t)(rows * ld);
    const bool bare = kind == GATE_SIGTANH && sd < 1; /* x = 0: only z tanh(c) remains */
    float *x = normal(size, "x", 0, 1), *y = normal(size, "y", 0, 1);
    float *a = normal(wide, "a", 0, sd * 10), *c = normal(wide, "c", 0, sd);
    float *bias = normal((size_t)n, "bias", 0, 1), *got = guarded(size), *want = guarded(size);
    double worst = 0;

    if (bare)
        memset(x, 0, size * sizeof(*x));
    a[ld + n / 2] = NAN;
    struct gate_op o = {.kind = kind,
                        .out = want,
                        .x = x,
                        .y = y,
                        .a = a,
                        .c = c,
                        .b = bias,
                        .ld = ld,
                        .rows = rows,
                        .n = n,
                        .threads = 1};
    backend_ref.ops.gate(&o);
    memcpy(got, x, size * sizeof(*x)); /* in place */
    o.x = o.out = got;
    b->ops.gate(&o);
    for (size_t i = 0; i < size; i++) {
        const bool has_tanh = kind == GATE_SIGTANH || kind == GATE_UPDATE;
        const size_t pre = i / (size_t)n * (size_t)ld + i % (size_t)n;
        const double arg = fabs((double)a[pre]) + fabs((double)bias[i % (size_t)n]);
        const double second = has_tanh ? tanh((double)c[pre]) : (double)y[i];
        const double terms = fabs((double)x[i]) + fabs(second);
        const bool relative = kind == GATE_RESET || bare;
        const double of = relative ? fabs((double)want[i]) : terms;
        const double e = in_bounds(got[i], want[i], U * (arg + 18) * of + SMALLEST * terms);
        worst = fmax(worst, e);
    }
    cr_expect(guards_intact(got, size));
    release(x), release(y), release(a), release(c), release(bias), release(got), release(want);
    return worst;
}

ParameterizedTestParameters(rows, gate) { return with_own_rows(); }
ParameterizedTest(struct who *w, rows, gate)
{
    const struct backend *b = subject(w);
    static const float spreads[] = {1e-6f, 0.1f, 1.0f, 8.0f, 1000.0f};

    for (enum gate_kind kind = GATE_INPUT; kind <= GATE_UPDATE; kind++)
        for (size_t s = 0; s < ARRAY_LEN(spreads); s++)
            for (size_t c = 0; c < ARRAY_LEN(sizes); c++) {
                const double e = gate_error(b, kind, sizes[c], spreads[s]);
                cr_assert_lt(e, 1.0, "%s: kind %d, n = %d, sd %g: %.2f x its bound", b->name,
                             (int)kind, sizes[c], (double)spreads[s], e);
            }
}

ParameterizedTestParameters(rows, nll) { return with_own_rows(); }
ParameterizedTest(struct who *w, rows, nll)
{
    const struct backend *b = subject(w);
    static const float spreads[] = {0.0f, 1.0f, 1e4f};

    for (size_t s = 0; s < ARRAY_LEN(spreads); s++)
        for (size_t c = 0; c < ARRAY_LEN(sizes); c++) {
            const int n = sizes[c], rows = 5;
            float *x = normal((size_t)(rows * n), "logits", 2, spreads[s]);
            float *got = guarded((size_t)rows), *want = guarded((size_t)rows);
            const int32_t target[] = {0, n - 1, n / 2, n / 3, 0};
            if (n > 2)
                x[n + 1] = -INFINITY;
            x[4 * n] = NAN;
            struct nll_op o = {
                .nll = got, .logits = x, .target = target, .rows = rows, .n = n, .threads = 1};
            b->ops.nll(&o);
            o.nll = want;
            backend_ref.ops.nll(&o);
            const double span = 2 * max_abs(x, (size_t)(rows * n));
            for (int i = 0; i < rows; i++) {
                /* exp as in softmax_bound, the sum, log, two additions */
                const double bound = U * (fmin(span, 104) + n + 12 + 2 * span);
                const double e = in_bounds(got[i], want[i], bound);
                cr_assert_lt(e, 1.0, "%s: n = %d, row %d: %g, not %g", b->name, n, i,
                             (double)got[i], (double)want[i]);
            }
            cr_expect(guards_intact(got, (size_t)rows));
            release(x), release(got), release(want);
        }
}

/* Threads only divide rows: the result is the same to the bit, also inside a parallel region. */
ParameterizedTestParameters(rows, threads) { return with_own_rows(); }
ParameterizedTest(struct who *w, rows, threads)
{
    const struct backend *b = subject(w);
    enum { ROWS = 67, N = 1023 };
    float *one = normal(ROWS * N, "s", 0, 2), *two = guarded(ROWS * N), *inside = guarded(ROWS * N);
    struct softmax o = {
        .s = one, .ld = N, .rows = ROWS, .cols = N, .hi = 3, .hi_slope = 1, .threads = 1};

    memcpy(two, one, sizeof(float[ROWS * N]));
    memcpy(inside, one, sizeof(float[ROWS * N]));
    b->ops.softmax(&o);
    o.s = two, o.threads = 2;
    b->ops.softmax(&o);
    o.s = inside, o.threads = 1;
#pragma omp parallel num_threads(2)
#pragma omp single
    b->ops.softmax(&o);
    cr_assert_arr_eq(one, two, sizeof(float[ROWS * N]));
    cr_assert_arr_eq(one, inside, sizeof(float[ROWS * N]));
    release(one), release(two), release(inside);
}

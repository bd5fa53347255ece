/* SPDX-License-Identifier: MIT
 *
 * The short convolution through the library: its equation in double, with sequences or texts, states and
 * gradients, and what is refused. */
#include "tests/support/compared.h"
#include "tests/support/kernel/fenced.h"
#include "tests/support/kernel/library.h"

TestSuite(library_conv, .timeout = 60);

enum { L = 12, N = 70, MOST = 3 * L * N, SEQUENCES = 2 };
static const int32_t cuts[] = {0, 1, 5, L}, nowhere[] = {0, 5, 5, L};

struct arrays {
    float *x, *w, *bias, *s0, *s1, *y, *d_y, *d_s1, *d_x, *d_w, *d_bias, *d_s0;
};

static void make(struct arrays *a)
{
    float **const in[] = {&a->x, &a->w, &a->bias, &a->s0, &a->d_y, &a->d_s1};
    float **const out[] = {&a->s1, &a->y, &a->d_x, &a->d_w, &a->d_bias, &a->d_s0};

    for (size_t i = 0; i < ARRAY_LEN(in); i++)
        *in[i] = normals(MOST, (const char *[]){"x", "w", "bias", "s0", "d_y", "d_s1"}[i], 0, 1);
    for (size_t i = 0; i < ARRAY_LEN(out); i++)
        *out[i] = fenced(MOST);
    for (int i = 0; i < MOST; i++)
        a->d_w[i] = a->d_bias[i] = 1; /* which is added to */
}

static struct ba_conv call_of(const struct arrays *a, int taps, bool texts, bool state, bool silu)
{
    return (struct ba_conv){.size = sizeof(struct ba_conv),
                            .B = texts ? 1 : SEQUENCES,
                            MEMBERS(, L, taps, silu),
                            .n = N,
                            .texts = texts ? 3 : 0,
                            .cu_seqlens = texts ? cuts : NULL,
                            MEMBERS(a->, x, w, s1, y),
                            .bias = state ? a->bias : NULL,
                            .s0 = state ? a->s0 : NULL};
}

static struct ba_conv_grad grad_of(const struct arrays *a, const struct ba_conv *c)
{
    return (struct ba_conv_grad){.size = sizeof(struct ba_conv_grad),
                                 MEMBERS(a->, d_y, d_s1, d_x, d_w, d_s0),
                                 .d_bias = c->bias ? a->d_bias : NULL};
}

/* ---- the equation ------------------------------------------------------------------------- */

/* Part `i`, a sequence or a text, of channel e: its rows, those of the state before them. */
struct part {
    int first, rows; /* of x */
    ptrdiff_t state; /* of s0 */
};

static struct part part_of(const struct ba_conv *c, int i)
{
    const ptrdiff_t state = (ptrdiff_t)i * (c->taps - 1) * N;

    return c->texts ? (struct part){cuts[i], cuts[i + 1] - cuts[i], state}
                    : (struct part){i * L, L, state};
}

/* Where row t of the part is, in x or, before it, in the state. */
static ptrdiff_t place(const struct ba_conv *c, struct part p, int t, int e)
{
    return t >= 0 ? (ptrdiff_t)(p.first + t) * N + e
                  : p.state + (ptrdiff_t)(c->taps - 1 + t) * N + e;
}

static double row(const struct ba_conv *c, struct part p, int t, int e)
{
    const float *const from = t >= 0 ? c->x : c->s0;

    return from ? (double)from[place(c, p, t, e)] : 0;
}

static double sum_at(const struct ba_conv *c, struct part p, int t, int e)
{
    double sum = c->bias ? (double)c->bias[e] : 0;

    for (int s = 0; s < c->taps; s++)
        sum += (double)c->w[e * c->taps + s] * row(c, p, t - c->taps + 1 + s, e);
    return sum;
}

/* f and its slope. */
static double silu(double x, bool on) { return on ? x / (1 + exp(-x)) : x; }
static double slope(double x, bool on)
{
    const double s = 1 / (1 + exp(-x));

    return on ? s * (1 + x * (1 - s)) : 1;
}

struct wanted {
    double x[MOST], s0[MOST], w[MOST], bias[N];
};

static void want_gradients(const struct ba_conv *c, const struct arrays *a, int parts,
                           struct wanted *d)
{
    memset(d, 0, sizeof(*d));
    for (int i = 0; i < MOST; i++)
        d->w[i] = d->bias[i % N] = 1;
    for (int i = 0; i < parts; i++)
        for (int e = 0; e < N; e++) {
            const struct part p = part_of(c, i);
            for (int t = 0; t < p.rows; t++) {
                const double g =
                    (double)a->d_y[place(c, p, t, e)] * slope(sum_at(c, p, t, e), c->silu);
                d->bias[e] += g;
                for (int s = 0; s < c->taps; s++) {
                    const int j = t - c->taps + 1 + s;
                    d->w[e * c->taps + s] += g * row(c, p, j, e);
                    (j >= 0 ? d->x : d->s0)[place(c, p, j, e)] += g * (double)c->w[e * c->taps + s];
                }
            }
            for (int k = 0; k < c->taps - 1; k++) {
                const int j = p.rows - c->taps + 1 + k;
                (j >= 0 ? d->x : d->s0)[place(c, p, j, e)] +=
                    (double)a->d_s1[p.state + (ptrdiff_t)k * N + e];
            }
        }
}

/* Sums of at most 3 L terms, each below 64, are off by half a unit in the last place of 64 a step. */
static void expect_near(const float *got, const double *want, ptrdiff_t n, const char *what)
{
    const double bound = 3 * L * 64 * 0x1p-24;

    for (ptrdiff_t i = 0; i < n; i++)
        cr_assert_lt(fabs((double)got[i] - want[i]), bound, "%s[%td] is %g, not %g", what, i,
                     (double)got[i], want[i]);
}

static void try_call(struct ba_engine *engine, int taps, bool texts, bool state, bool on)
{
    const int parts = texts ? 3 : SEQUENCES;
    static struct wanted d;
    struct arrays a;
    char why[256];

    make(&a);
    const struct ba_conv c = call_of(&a, taps, texts, state, on);
    const struct ba_conv_grad grad = grad_of(&a, &c);
    cr_assert_eq(ba_conv_forward(engine, &c, why, sizeof(why)), BA_OK, "%s", why);
    for (int i = 0; i < parts; i++)
        for (int e = 0; e < N; e++) {
            const struct part p = part_of(&c, i);
            for (int t = 0; t < p.rows; t++)
                cr_assert_float_eq(a.y[place(&c, p, t, e)], silu(sum_at(&c, p, t, e), on), 1e-5,
                                   "part %d row %d", i, t);
            for (int k = 0; k < taps - 1; k++)
                cr_assert_eq((double)a.s1[p.state + (ptrdiff_t)k * N + e],
                             row(&c, p, p.rows - taps + 1 + k, e), "part %d state %d", i, k);
        }
    want_gradients(&c, &a, parts, &d);
    cr_assert_eq(ba_conv_backward(engine, &c, &grad, why, sizeof(why)), BA_OK, "%s", why);
    const ptrdiff_t rows = (ptrdiff_t)c.B * L * N, states = (ptrdiff_t)parts * (taps - 1) * N;
    expect_near(a.d_x, d.x, rows, "d_x");
    expect_near(a.d_w, d.w, N * taps, "d_w");
    expect_near(a.d_s0, d.s0, states, "d_s0");
    if (state)
        expect_near(a.d_bias, d.bias, N, "d_bias");
    NUMBERS({a.y[rows], GUARD_VALUE}, {a.d_x[rows], GUARD_VALUE}, {a.s1[states], GUARD_VALUE},
            {a.d_s0[states], GUARD_VALUE});
}

/* One tap has no state; more taps than a text has tokens read the state twice. */
Test(library_conv, is_its_equation)
{
    for (int b = 0; ba_backend_name(b); b++)
        for (int form = 0; form < 32; form++)
            try_call(library_engine(ba_backend_name(b), 1 + 2 * (form & 1)),
                     form & 2 ? 4 : 1 + form / 16 * 5, form & 4, form & 8, form & 1);
}

/* Over the state before, which is not needed any more: token by token is all at once. */
Test(library_conv, token_by_token)
{
    enum { TAPS = 4 };
    struct ba_engine *const engine = library_engine(NULL, 1);
    struct arrays a;
    char why[256];

    make(&a);
    struct ba_conv all = call_of(&a, TAPS, false, true, true), one = all;
    all.B = one.B = one.L = 1;
    float *const state = fenced((TAPS - 1) * N), *const y = fenced(N);
    memcpy(state, a.s0, (TAPS - 1) * N * sizeof(float));
    cr_assert_eq(ba_conv_forward(engine, &all, why, sizeof(why)), BA_OK, "%s", why);
    one.s0 = one.s1 = state;
    one.y = y;
    for (int t = 0; t < L; t++) {
        one.x = a.x + t * N;
        cr_assert_eq(ba_conv_forward(engine, &one, why, sizeof(why)), BA_OK, "%s", why);
        cr_assert_arr_eq(y, a.y + t * N, N * sizeof(float), "token %d", t);
    }
    cr_expect_arr_eq(state, a.s1, (TAPS - 1) * N * sizeof(float));
}

#define REFUSED(...)                                                                               \
    do {                                                                                           \
        struct ba_conv c = call_of(&a, 4, true, true, true);                                       \
        struct ba_conv_grad d = grad_of(&a, &c);                                                   \
        __VA_ARGS__;                                                                               \
        ANSWERS(BA_ARGUMENT, #__VA_ARGS__, ba_conv_backward, engine, &c, &d);                      \
    } while (0)

Test(library_conv, refuses_what_has_no_meaning)
{
    struct ba_engine *const engine = library_engine(NULL, 1);
    struct arrays a;

    make(&a);
    REFUSED(c.size = 8);
    REFUSED(c.B = 0);
    REFUSED(c.B = 2);
    REFUSED(c.L = 0);
    REFUSED(c.n = -1);
    REFUSED(c.n = 1 << 20; c.L = 1 << 12);
    REFUSED(c.taps = 0);
    REFUSED(c.taps = 1025);
    REFUSED(c.silu = 2);
    REFUSED(c.x = NULL);
    REFUSED(c.w = NULL);
    REFUSED(c.s1 = a.s0);
    REFUSED(c.bias = NULL);
    REFUSED(c.texts = 2);
    REFUSED(c.cu_seqlens = NULL);
    REFUSED(c.cu_seqlens = nowhere);
    REFUSED(d.size = 0);
    REFUSED(d.d_y = NULL);
    REFUSED(d.d_x = NULL);
    struct ba_conv c = call_of(&a, 4, false, false, false);
    cr_expect_eq(ba_conv_backward(NULL, &c, NULL, NULL, 0), BA_ARGUMENT);
    cr_expect_eq(ba_conv_backward(engine, NULL, NULL, NULL, 0), BA_ARGUMENT);
    c.y = NULL;
    cr_expect_eq(ba_conv_forward(engine, &c, NULL, 0), BA_ARGUMENT);
}

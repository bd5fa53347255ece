/* SPDX-License-Identifier: MIT
 *
 * Recurrences through the library: what shares numbers, and what is refused. */
#include "tests/support/kernel/fenced.h"
#include "tests/support/kernel/library.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

TestSuite(library_recurrence, .timeout = 120);

/* ---- every rule --------------------------------------------------------------------------- */

enum { Q, K, V, G, BETA, A, Bb, GATE, BONUS, S0, Z0, M0, D_O, D_S1, INPUTS };
enum { O, DEN, S1, Z1, M1, OUTPUTS };
enum { B = 2, H = 4, HS = 2, L = 40, M = 33, T = L + M, DK = 9, DV = 7 };
enum { MOST = B * T * H * DK * DV }; /* floats of any array */

static const struct rule {
    const char *name;
    int decay; /* 0, 1, DK */
    bool own, free, bonus, gate, state;
    enum ba_norm norm;
} rules[] = {
    {.name = "plain"},
    {.name = "sum", .norm = BA_NORM_SUM, .state = true},
    {.name = "decay by head", .decay = 1, .state = true},
    {.name = "decay by channel", .decay = DK},
    {.name = "delta", .own = true, .state = true},
    {.name = "gated delta", .decay = 1, .own = true},
    {.name = "free rank one", .decay = DK, .free = true, .state = true},
    {.name = "bonus", .decay = DK, .bonus = true, .state = true},
    {.name = "matrix LSTM", .decay = 1, .gate = true, .norm = BA_NORM_MLSTM, .state = true},
    {.name = "gated sum", .gate = true, .norm = BA_NORM_SUM},
};

struct arrays {
    float *in[INPUTS], *out[OUTPUTS], *d[INPUTS];
};

static void make(struct arrays *x)
{
    for (int i = 0; i < INPUTS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "in%d", i);
        x->in[i] =
            i == Q || i == K || i == Z0 ? kept(positive(MOST, name)) : normals(MOST, name, 0, 0.3f);
        x->d[i] = fenced(MOST);
        memset(x->d[i], 0, MOST * sizeof(float));
    }
    for (int e = 0; e < MOST; e++) {
        x->in[G][e] = -fabsf(x->in[G][e]);
        x->in[K][e] *= 0.2f; /* an erase may not grow */
        x->in[BETA][e] = 0.5f;
    }
    for (int i = 0; i < OUTPUTS; i++)
        x->out[i] = fenced(MOST);
}

static struct ba_rows rows(const float *at, int length, int heads, int width)
{
    return (struct ba_rows){at, (ptrdiff_t)length * heads * width, (ptrdiff_t)heads * width, width,
                            1};
}

static struct ba_recurrence call_of(const struct rule *f, const struct arrays *x)
{
    const bool norm = f->norm != BA_NORM_NONE;

    return (struct ba_recurrence){
        .size = sizeof(struct ba_recurrence),
        .B = B,
        .L = L,
        .M = M,
        .H = H,
        .Hs = HS,
        .dk = DK,
        .dv = DV,
        .g_width = f->decay,
        .scale = 0.5f,
        .eps = f->norm == BA_NORM_SUM && !f->gate ? 0.25f : 0,
        .norm = (int)f->norm,
        .q = rows(x->in[Q], L, H, DK),
        .k = rows(x->in[K], T, HS, DK),
        .v = rows(x->in[V], T, HS, DV),
        .g = rows(f->decay ? x->in[G] : NULL, T, HS, f->decay),
        .beta = rows(f->own ? x->in[BETA] : NULL, T, HS, 1),
        .a = rows(f->free ? x->in[A] : NULL, T, HS, DK),
        .b = rows(f->free ? x->in[Bb] : NULL, T, HS, DK),
        .i = rows(f->gate ? x->in[GATE] : NULL, T, HS, 1),
        .u = f->bonus ? x->in[BONUS] : NULL,
        .s0 = f->state ? x->in[S0] : NULL,
        .z0 = f->state && norm ? x->in[Z0] : NULL,
        .m0 = f->state && f->gate ? x->in[M0] : NULL,
        .s1 = x->out[S1],
        .z1 = norm ? x->out[Z1] : NULL,
        .m1 = f->gate ? x->out[M1] : NULL,
        .o = x->out[O],
        .den = x->out[DEN],
    };
}

static struct ba_recurrence_grad grad_of(const struct ba_recurrence *r, const struct arrays *x)
{
    return (struct ba_recurrence_grad){.size = sizeof(struct ba_recurrence_grad),
                                       .d_o = x->in[D_O],
                                       .d_s1 = x->in[D_S1],
                                       .d_q = x->d[Q],
                                       .d_k = x->d[K],
                                       .d_v = x->d[V],
                                       .d_g = r->g.at ? x->d[G] : NULL,
                                       .d_beta = r->beta.at ? x->d[BETA] : NULL,
                                       .d_a = r->a.at ? x->d[A] : NULL,
                                       .d_b = r->b.at ? x->d[Bb] : NULL,
                                       .d_u = r->u ? x->d[BONUS] : NULL,
                                       .d_i = r->i.at ? x->d[GATE] : NULL,
                                       .d_s0 = x->d[S0],
                                       .d_z0 = r->norm ? x->d[Z0] : NULL};
}

/* Of one array that sequences, keys or heads share the gradient is the sum of those that arrays of
 * their own would have; the number of threads changes nothing. */
Test(library_recurrence, what_is_shared_has_the_sum)
{
    for (int b = 0; ba_backend_name(b); b++)
        for (int axis = 0; axis < 3; axis++) { /* sequences, keys, heads */
            struct ba_engine *const four = library_engine(ba_backend_name(b), 4);
            struct ba_engine *const one = library_engine(ba_backend_name(b), 1);
            struct arrays x, y, z;
            make(&x), make(&y), make(&z);
            struct ba_recurrence r = call_of(&rules[3], &x), s;
            const ptrdiff_t n = T * HS * DK;
            *(axis == 0 ? &r.k.batch : axis == 1 ? &r.k.row : &r.k.head) = 0;
            r.o = x.out[O], r.s1 = NULL;
            for (int at = 0; at < B * T * HS * DK; at++) /* what the shared one stands for */
                z.in[K][at] = x.in[K][(axis == 0 ? 0 : at / n * n) +
                                      (axis == 1 ? 0 : at % n / (HS * DK) * HS * DK) +
                                      (axis == 2 ? 0 : at % (HS * DK) / DK * DK) + at % DK];
            s = call_of(&rules[3], &z);
            const struct ba_recurrence_grad d = grad_of(&r, &x), e = grad_of(&r, &y),
                                            f = grad_of(&s, &z);
            cr_assert_eq(ba_recurrence_forward(four, &r, NULL, 0), BA_OK);
            cr_assert_eq(ba_recurrence_backward(four, &r, &d, NULL, 0), BA_OK);
            cr_assert_eq(ba_recurrence_backward(one, &r, &e, NULL, 0), BA_OK);
            cr_assert_eq(ba_recurrence_forward(one, &s, NULL, 0), BA_OK);
            cr_assert_eq(ba_recurrence_backward(one, &s, &f, NULL, 0), BA_OK);
            cr_expect_arr_eq(x.d[K], y.d[K], MOST * sizeof(float), "%s, axis %d: threads",
                             ba_backend_name(b), axis);
            double *const sum = room(MOST, sizeof(*sum)), *const size = room(MOST, sizeof(*size));
            for (int at = 0; at < B * T * HS * DK; at++) {
                const ptrdiff_t to = at / n * r.k.batch + at % n / (HS * DK) * r.k.row +
                                     at % (HS * DK) / DK * r.k.head + at % DK;
                sum[to] += (double)z.d[K][at];
                size[to] += fabs((double)z.d[K][at]);
            }
            /* Each of the summands is good to 1e-4 of the largest (test_recur.c), a sum in place is
             * rounded with each. */
            double most = 0;
            for (int at = 0; at < MOST; at++)
                most = fmax(most, size[at]);
            for (int at = 0; at < MOST; at++)
                cr_expect_leq(fabs((double)x.d[K][at] - sum[at]), 1e-4 * most, "%s, axis %d: %d",
                              ba_backend_name(b), axis, at);
        }
}

/* ---- what is refused ---------------------------------------------------------------------- */

#define REFUSED(rule, ...)                                                                         \
    do {                                                                                           \
        struct ba_recurrence r = call_of(&rules[rule], &x);                                        \
        struct ba_recurrence_grad d = grad_of(&r, &x);                                             \
        char why[256] = "?";                                                                       \
        __VA_ARGS__;                                                                               \
        expect_status(ba_recurrence_backward(engine, &r, &d, why, sizeof(why)), BA_ARGUMENT, why,  \
                      #__VA_ARGS__);                                                               \
    } while (0)

Test(library_recurrence, refuses_what_has_no_meaning)
{
    enum { SUM = 1, HEADS = 2, CHANNELS = 3, DELTA = 4, FREE = 6, BONUSED = 7, LSTM = 8 };
    struct ba_engine *const engine = library_engine("ref", 1);
    struct arrays x;

    make(&x);
    REFUSED(0, r.size = 8);
    REFUSED(0, r.B = 0);
    REFUSED(0, r.L = -1);
    REFUSED(0, r.M = INT_MAX);
    REFUSED(0, r.Hs = 3);
    REFUSED(0, r.dv = INT_MAX);
    REFUSED(0, r.g_width = 1);
    REFUSED(0, r.g.at = x.in[G]);
    REFUSED(0, r.v.at = NULL);
    REFUSED(0, r.k.at = NULL);
    REFUSED(0, r.o = NULL);
    REFUSED(0, r.norm = 3);
    REFUSED(0, r.eps = 1);
    REFUSED(0, r.z0 = x.in[Z0]);
    REFUSED(0, r.m1 = x.out[M1]);
    REFUSED(0, r.k.per = -1);
    REFUSED(0, r.k.row = 1); /* gradients would overlap */
    REFUSED(0, r.v.batch = -1);
    REFUSED(0, r.texts = 1);
    REFUSED(CHANNELS, r.g_width = 2);
    REFUSED(SUM, r.beta = rows(x.in[BETA], T, HS, 1));
    REFUSED(SUM, r.den = NULL);
    REFUSED(SUM, r.eps = NAN);
    REFUSED(DELTA, r.a = r.b = r.k);
    REFUSED(FREE, r.b.at = NULL);
    REFUSED(BONUSED, r.norm = BA_NORM_SUM);
    REFUSED(BONUSED, r.i = rows(x.in[GATE], T, HS, 1));
    REFUSED(LSTM, r.norm = BA_NORM_NONE);
    REFUSED(LSTM, (r.norm = BA_NORM_SUM, r.eps = 1));
    REFUSED(LSTM, (r.g_width = DK, r.g = rows(x.in[G], T, HS, DK)));
    REFUSED(HEADS, d.size = 0);
    REFUSED(HEADS, d.d_o = NULL);
    REFUSED(HEADS, d.d_u = x.d[BONUS]);
    REFUSED(HEADS, d.d_beta = x.d[BETA]);
    REFUSED(HEADS, r.s1 = x.in[S0]);
}

/* Only keys: the state moves on, and nothing is read of it. */
Test(library_recurrence, without_queries)
{
    struct ba_engine *const engine = library_engine(NULL, 1);
    struct arrays x;
    char why[256] = "?";

    make(&x);
    struct ba_recurrence r = call_of(&rules[2], &x), split = r;
    r.L = 0, r.M = T, r.q.at = NULL, r.o = r.den = NULL;
    expect_status(ba_recurrence_forward(engine, &r, why, sizeof(why)), BA_OK, why, "all keys");
    split.s1 = x.out[Z1];
    expect_status(ba_recurrence_forward(engine, &split, why, sizeof(why)), BA_OK, why, "queries");
    for (int e = 0; e < B * HS * DK * DV; e++)
        cr_expect_leq(fabs((double)(x.out[S1][e] - x.out[Z1][e])), 3e-5);
}

/* SPDX-License-Identifier: MIT
 *
 * Recurrences through the library: what shares numbers. */
#include "tests/support/kernel/fenced.h"
#include "tests/support/kernel/library.h"

TestSuite(library_recurrence, .timeout = 120);

enum { Q, K, V, G, D_O, S0, INPUTS };
enum { B = 2, H = 4, HS = 2, L = 40, M = 33, T = L + M, DK = 9, DV = 7 };
enum { MOST = B * T * H * DK }; /* floats of any array */

struct arrays {
    float *in[INPUTS], *o, *s1, *d[G + 1];
};

static struct arrays made(void)
{
    struct arrays x = {.o = fenced(MOST), .s1 = fenced(MOST)};

    for (int i = 0; i < INPUTS; i++) {
        const char *const name = kept_text("in%d", i);
        x.in[i] = i == Q || i == K ? kept(positive(MOST, name)) : normals(MOST, name, 0, 0.3f);
    }
    for (int i = 0; i <= G; i++)
        x.d[i] = memset(fenced(MOST), 0, MOST * sizeof(float));
    for (int e = 0; e < MOST; e++) {
        x.in[G][e] = -fabsf(x.in[G][e]);
        x.in[K][e] *= 0.2f;
    }
    return x;
}

static struct ba_rows rows(const float *at, int length, int heads, int width)
{
    return (struct ba_rows){at, (ptrdiff_t)length * heads * width, (ptrdiff_t)heads * width, width,
                            1};
}

/* Decays are DK for a head, or one. */
static struct ba_recurrence call_of(const struct arrays *x, int decays)
{
    return (struct ba_recurrence){
        .size = sizeof(struct ba_recurrence),
        MEMBERS(, B, L, M, H),
        .Hs = HS,
        .dk = DK,
        .dv = DV,
        .g_width = decays,
        .scale = 0.5f,
        .q = rows(x->in[Q], L, H, DK),
        .k = rows(x->in[K], T, HS, DK),
        .v = rows(x->in[V], T, HS, DV),
        .g = rows(x->in[G], T, HS, decays),
        .o = x->o,
    };
}

static struct ba_recurrence_grad grad_of(const struct arrays *x)
{
    return (struct ba_recurrence_grad){.size = sizeof(struct ba_recurrence_grad),
                                       .d_o = x->in[D_O],
                                       .d_q = x->d[Q],
                                       .d_k = x->d[K],
                                       .d_v = x->d[V],
                                       .d_g = x->d[G]};
}

/* Of one array that sequences, keys or heads share the gradient is the sum of those that arrays of
 * their own would have; the number of threads changes nothing. */
Test(library_recurrence, what_is_shared_has_the_sum)
{
    for (int b = 0; ba_backend_name(b); b++)
        for (int axis = 0; axis < 3; axis++) { /* sequences, keys, heads */
            struct ba_engine *const four = library_engine(ba_backend_name(b), 4);
            struct ba_engine *const one = library_engine(ba_backend_name(b), 1);
            struct arrays x = made(), y = made(), z = made();
            struct ba_recurrence r = call_of(&x, DK), s;
            const ptrdiff_t n = T * HS * DK;
            *(axis == 0 ? &r.k.batch : axis == 1 ? &r.k.row : &r.k.head) = 0;
            for (int at = 0; at < B * T * HS * DK; at++) /* what the shared one stands for */
                z.in[K][at] = x.in[K][(axis == 0 ? 0 : at / n * n) +
                                      (axis == 1 ? 0 : at % n / (HS * DK) * HS * DK) +
                                      (axis == 2 ? 0 : at % (HS * DK) / DK * DK) + at % DK];
            s = call_of(&z, DK);
            const struct ba_recurrence_grad d = grad_of(&x), e = grad_of(&y), f = grad_of(&z);
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

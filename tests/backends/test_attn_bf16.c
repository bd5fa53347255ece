/* SPDX-License-Identifier: MIT
 *
 * Attention over keys and values in bf16: that of the rounded numbers as floats, or refused. */
#include "tests/support/attn_case.h"
#include "tests/support/every_backend.h"

#include <stdio.h>

static const struct shape shapes[] = {
    {1, 1, 1, 1, 0, 8},     {2, 4, 2, 1, 70, 40},   {1, 2, 2, 4, 300, 5},   {1, 4, 2, 9, 0, 64},
    {2, 2, 2, 37, 130, 20}, {1, 2, 1, 130, 19, 33}, {1, 2, 1, 64, 800, 80}, {1, 3, 1, 19, 45, 130},
};
static const struct scheme schemes[] = {
    {LSE, 0, 0, 0},
    {LSE, 0, 0, 11},
    {FULL | CAP, 0, 0, 0},
    {BIAS | PER_HEAD | LSE, ALL_KEYS, 0, 0},
    {HAS_U | HAS_W | REL_K | REL_V | LSE, 21, 0, 33},
    {WIDE_V | SINK_LOGIT, 0, 0, 0},
    {NARROW_V, 0, 0, 0},
};

/* x rounded, as bf16 with gaps of their own and as floats in place. */
static uint16_t *rounded(float *x, struct stride from, struct stride *at, int B, int rows, int n)
{
    *at = (struct stride){.batch = rows * (n + 3) + 7, .row = n + 3};
    const size_t size = (size_t)(B * at->batch);
    uint16_t *const to = malloc(size * sizeof(*to));

    cr_assert_not_null(to);
    memset(to, 0xff, size * sizeof(*to)); /* gaps are NaN */
    for (int b = 0; b < B; b++)
        for (int j = 0; j < rows; j++) {
            float *const wide = x + b * from.batch + j * from.row;
            uint16_t *const half = to + b * at->batch + j * at->row;
            elem_narrow(ELEM_BF16, half, wide, n);
            elem_widen(ELEM_BF16, wide, half, 0, n);
        }
    return to;
}

/* The same numbers in the same order: the same bits, but for `ref`, whose doubles may be summed in
 * another order and then round to the next float. */
static void expect_same(const struct engine *g, const float *got, const float *want, size_t n,
                        const char *what)
{
    const float ulp = g->backend == &backend_ref ? 0x1p-23f : 0;

    for (size_t i = 0; i < n; i++)
        cr_assert(got[i] == want[i] || fabsf(got[i] - want[i]) <= ulp * fabsf(want[i]),
                  "%s: %.9g, not %.9g at %zu", what, (double)got[i], (double)want[i], i);
}

static void compare(const struct engine *g, const struct shape *s, const struct scheme *scheme,
                    bool all)
{
    struct operands x;
    char what[96];

    make_operands(&x, s, scheme);
    if (all)
        round_operands(&x);
    struct attn *const a = &x.a;
    const int K = attn_keys(a);
    snprintf(what, sizeof(what), "%s, %d threads, L %d M %d dh %d terms %d%s", g->backend->name,
             g->threads, s->L, s->M, s->dh, scheme->terms, all ? ", queries rounded" : "");
    struct stride k_at, v_at;
    uint16_t *const k = rounded(x.k, a->k_at, &k_at, a->B, K, a->Hkv * a->dh);
    uint16_t *const v = rounded(x.v, a->v_at, &v_at, a->B, K, a->Hkv * attn_dv(a));
    float *const want = malloc((x.o_size + x.lse_size + 1) * sizeof(*want));
    cr_assert_not_null(want);
    attend(g, a);
    memcpy(want, x.o, x.o_size * sizeof(*want));
    if (a->lse)
        memcpy(want + x.o_size, x.lse, x.lse_size * sizeof(*want));
    const double bytes = attn_bytes(a);
    a->k = a->v = NULL;
    a->k_bf16 = k, a->v_bf16 = v;
    a->k_at = k_at, a->v_at = v_at;
    attn_check(a);
    memset(x.o, 0, x.o_size * sizeof(*x.o));
    for (size_t i = 0; i < x.o_size; i++)
        x.o[i] = want[i] == GUARD_VALUE ? GUARD_VALUE : 0;
    attend(g, a);
    expect_same(g, x.o, want, x.o_size, what);
    if (a->lse)
        expect_same(g, x.lse, want + x.o_size, x.lse_size, what);
    cr_expect_eq(bytes - attn_bytes(a), 2.0 * a->B * K * a->Hkv * (a->dh + attn_dv(a)), "%s", what);
    free(want);
    free(k);
    free(v);
    free_operands(&x);
}

ParameterizedTestParameters(attn_bf16, is_that_of_rounded_numbers)
{
    return every_narrow_backend();
}
ParameterizedTest(int *b, attn_bf16, is_that_of_rounded_numbers, .timeout = 120)
{
    static const uint16_t some = 0;

    for (int threads = 1; threads <= 3; threads += 2) {
        const struct engine g = open_engine(backends[*b]->name, threads);
        struct attn plain = {.B = 1, .H = 1, .Hkv = 1, .L = 1, .M = 1, .dh = 8, .scale = 1};
        const struct attn_impl *impl;
        struct err e = {""};
        plain.k_bf16 = plain.v_bf16 = &some;
        if (engine_attn(&g, &plain, &impl, &e) != OK) {
            cr_expect(strstr(e.msg, "bf16"), "%s", e.msg);
            continue;
        }
        for (size_t s = 0; s < ARRAY_LEN(shapes); s++)
            for (size_t t = 0; t < ARRAY_LEN(schemes); t++)
                for (int all = 0; all < 2; all++)
                    compare(&g, &shapes[s], &schemes[t], all);
    }
}

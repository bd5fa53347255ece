/* SPDX-License-Identifier: MIT
 *
 * Attention over keys and values in bf16 and q8: that of the rounded numbers as floats, or
 * refused. */
#include "tests/support/every_backend.h"
#include "tests/support/kernel/attn_case.h"

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

/* Rows of heads of n numbers in a narrow type, with gaps of their own; x becomes the same numbers.
 * Strides count units of 2 bytes in bf16, of 4 in q8. */
static void *stored(enum elem elem, float *x, struct stride from, struct stride *at, int B,
                    int rows, int heads, int n)
{
    const size_t unit = elem == ELEM_Q8 ? 4 : 2;
    const ptrdiff_t row = elem == ELEM_Q8 ? heads * q8_head_words(n) : (ptrdiff_t)heads * n;

    *at = (struct stride){.batch = rows * (row + 3) + 7, .row = row + 3};
    const size_t size = (size_t)(B * at->batch) * unit;
    char *const to = room(1, size + 2); /* an odd row of bf16 is filled up */
    memset(to, 0xff, size + 2);         /* gaps are NaN */
    for (int b = 0; b < B; b++)
        for (int j = 0; j < rows; j++) {
            float *const wide = x + b * from.batch + j * from.row;
            char *const narrow = to + (size_t)(b * at->batch + j * at->row) * unit;
            elem_heads_narrow(elem, narrow, wide, heads, n);
            for (int i = 0; i < heads * n; i++)
                wide[i] = elem == ELEM_Q8 ? q8_head_number((const uint32_t *)(void *)narrow +
                                                               i / n * q8_head_words(n),
                                                           i % n)
                                          : bf16_float(((const uint16_t *)(void *)narrow)[i]);
        }
    return to;
}

/* In bf16 the same numbers in the same order: the same bits, but for `ref`, whose doubles may be
 * summed in another order and then round to the next float. In q8 a scale may be multiplied after
 * the sum: within `bound`. */
static void expect_same(const struct engine *g, const float *got, const float *want, size_t n,
                        double bound, const char *what)
{
    const float ulp = g->backend == &backend_ref ? 0x1p-23f : 0;

    for (size_t i = 0; i < n; i++)
        cr_assert(got[i] == want[i] || fabsf(got[i] - want[i]) <= ulp * fabsf(want[i]) ||
                      fabs((double)got[i] - (double)want[i]) <= bound,
                  "%s: %.9g, not %.9g at %zu", what, (double)got[i], (double)want[i], i);
}

/* `all`: of a model in bf16, whose queries are rounded, too. */
static void compare(const struct engine *g, const struct shape *s, const struct scheme *scheme,
                    enum elem elem, bool all)
{
    struct operands x;

    make_operands(&x, s, scheme);
    if (all)
        round_operands(&x);
    struct attn *const a = &x.a;
    const int K = attn_keys(a), dv = attn_dv(a);
    const char *const what = kept_text("%s, %s, %d threads, L %d M %d dh %d terms %d%s",
                                       g->backend->name, elem_name[elem], g->threads, s->L, s->M,
                                       s->dh, scheme->terms, all ? ", queries rounded" : "");
    struct stride k_at, v_at;
    void *const k = stored(elem, x.k, a->k_at, &k_at, a->B, K, a->Hkv, a->dh);
    void *const v = stored(elem, x.v, a->v_at, &v_at, a->B, K, a->Hkv, dv);
    float *const want = room(x.o_size + x.lse_size + 1, sizeof(*want));
    attend(g, a);
    memcpy(want, x.o, x.o_size * sizeof(*want));
    if (a->lse)
        memcpy(want + x.o_size, x.lse, x.lse_size * sizeof(*want));
    const double bytes = attn_bytes(a);
    const struct bound bound = elem == ELEM_Q8 ? attn_bound(&x) : (struct bound){0, 0};
    a->k = a->v = NULL;
    if (elem == ELEM_Q8)
        a->k_q8 = k, a->v_q8 = v;
    else
        a->k_bf16 = k, a->v_bf16 = v;
    a->k_at = k_at, a->v_at = v_at;
    attn_check(a);
    memset(x.o, 0, x.o_size * sizeof(*x.o));
    for (size_t i = 0; i < x.o_size; i++)
        x.o[i] = want[i] == GUARD_VALUE ? GUARD_VALUE : 0;
    attend(g, a);
    expect_same(g, x.o, want, x.o_size, bound.out, what);
    if (a->lse)
        expect_same(g, x.lse, want + x.o_size, x.lse_size, bound.lse, what);
    const double heads = (double)a->B * K * a->Hkv;
    const double saved = elem == ELEM_Q8
                             ? 4.0 * (double)(a->dh + dv - q8_head_words(a->dh) - q8_head_words(dv))
                             : 2.0 * (a->dh + dv);
    cr_expect_eq(bytes - attn_bytes(a), heads * saved, "%s", what);
    free_operands(&x);
}

/* What rounds its operands gives the same bits for floats as for the numbers they are rounded to.
 */
static void expect_rounds(const struct engine *g, const struct shape *s,
                          const struct scheme *scheme)
{
    struct operands x;

    make_operands(&x, s, scheme);
    round_operands(&x);
    const float *const q = x.a.q, *const k = x.a.k, *const v = x.a.v;
    struct operands raw;
    make_operands(&raw, s, scheme);
    x.a.unrounded = true;
    attend(g, &x.a);
    float *const want = copied(x.o, x.o_size);
    x.a.q = raw.a.q, x.a.k = raw.a.k, x.a.v = raw.a.v;
    attend(g, &x.a);
    cr_assert_arr_eq(x.o, want, x.o_size * sizeof(*want), "%s, L %d M %d dh %d terms %d",
                     g->backend->name, s->L, s->M, s->dh, scheme->terms);
    x.a.q = q, x.a.k = k, x.a.v = v;
    free_operands(&raw);
    free_operands(&x);
}

TEST_EACH(int *b, attn_narrow, operands_are_rounded, every_narrow_backend(), .timeout = 240)
{
    const struct engine g = open_engine(backends[*b]->name, 2);

    for (int i = 0; g.attn[i]; i++)
        for (size_t s = 0; s < ARRAY_LEN(shapes) && g.attn[i]->rounds; s++)
            for (size_t t = 0; t < ARRAY_LEN(schemes); t++)
                expect_rounds(&g, &shapes[s], &schemes[t]);
}

static bool reads(const struct engine *g, enum elem elem)
{
    static const uint16_t half = 0;
    static const uint32_t word = 0;
    struct attn plain = {.B = 1, .H = 1, .Hkv = 1, .L = 1, .M = 1, .dh = 8, .scale = 1};
    const struct attn_impl *impl;
    struct err e = {""};

    if (elem == ELEM_Q8)
        plain.k_q8 = plain.v_q8 = &word;
    else
        plain.k_bf16 = plain.v_bf16 = &half;
    if (engine_attn(g, &plain, &impl, &e) == OK)
        return true;
    HAS(e.msg, elem_name[elem]);
    return false;
}

TEST_EACH(int *b, attn_narrow, is_that_of_rounded_numbers, every_narrow_backend(), .timeout = 120)
{
    for (int threads = 1; threads <= 3; threads += 2) {
        const struct engine g = open_engine(backends[*b]->name, threads);
        for (size_t s = 0; s < ARRAY_LEN(shapes) && reads(&g, ELEM_BF16); s++)
            for (size_t t = 0; t < ARRAY_LEN(schemes); t++)
                for (int all = 0; all < 2 && sampled(s + t, 2); all++)
                    compare(&g, &shapes[s], &schemes[t], ELEM_BF16, all);
        for (size_t s = 0; s < ARRAY_LEN(shapes) && reads(&g, ELEM_Q8); s++)
            for (size_t t = 0; t < ARRAY_LEN(schemes); t++)
                if (sampled(s + t, 2))
                    compare(&g, &shapes[s], &schemes[t], ELEM_Q8, false);
    }
}

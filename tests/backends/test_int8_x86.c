/* SPDX-License-Identifier: MIT
 *
 * Products of rows of q8 on CPUs with VNNI and as on those without: every sum within its bound of
 * the reference, of shapes around blocks, tiles, few rows and steps of k, packed and in place. */
#include "harness/check/op_bounds.h"
#include "tests/support/open_engine.h"
#include "variants/base/rng.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <stdlib.h>

struct sizes {
    int m, n, k;
};

ParameterizedTestParameters(int8_x86, sums)
{
    static struct sizes shapes[] = {
        {1, 1, 1},     {1, 5, 33},     {2, 3, 64},   {3, 70, 96},    {5, 33, 31},
        {8, 17, 1056}, {9, 31, 32},    {7, 64, 65},  {13, 34, 4000}, {6, 1, 3300},
        {149, 65, 97}, {150, 600, 32}, {4, 7, 9000},
    };

    return cr_make_param_array(struct sizes, shapes, ARRAY_LEN(shapes));
}

static void expect_sums(const struct engine *g, const struct engine *ref, struct gemm p, bool packs,
                        const float *old)
{
    const size_t size = (size_t)p.m * (size_t)p.n, floats = packs ? g->packed_floats(&p) : 0;
    float *const c = malloc(sizeof(*c) * size), *const want = malloc(sizeof(*want) * size);
    float *const packed = floats ? malloc(sizeof(*packed) * floats) : NULL;

    memcpy(c, old, sizeof(*c) * size);
    memcpy(want, old, sizeof(*want) * size);
    p.c = want;
    ref->ops.gemm(&p);
    if (packed)
        g->pack(packed, &p);
    p.b_packed = packed;
    p.c = c;
    g->ops.gemm(&p);
    for (int i = 0; i < p.m; i++)
        for (int j = 0; j < p.n; j++) {
            const int at = i * p.n + j;
            const double bound = product_bound(&p, p.beta != 0 ? (double)old[at] : 0, i, j);
            cr_assert(fabs((double)c[at] - (double)want[at]) <= bound,
                      "%s %s, %d x %d x %d, packed %d: %a at %d,%d, not %a", elem_name[p.elem],
                      g->int8_by(), p.m, p.n, p.k, packed != NULL, (double)c[at], i, j,
                      (double)want[at]);
        }
    free(packed);
    free(want);
    free(c);
}

static void narrow_weights(enum elem elem, char *to, const float *b, const struct sizes *s)
{
    for (int j = 0; j < s->n; j++)
        elem_narrow(elem, to + (size_t)j * elem_row_bytes(elem, s->k), b + (size_t)j * (size_t)s->k,
                    s->k);
}

ParameterizedTest(struct sizes *s, int8_x86, sums, .timeout = 240)
{
    static const enum isa levels[] = {ISA_AVX2, ISA_AVX512, ISA_COUNT - 1};
    const size_t m = (size_t)s->m, n = (size_t)s->n, k = (size_t)s->k;
    float *const a = malloc(sizeof(*a) * m * k), *const b = malloc(sizeof(*b) * n * k);
    float *const old = malloc(sizeof(*old) * m * n);
    char *const w = malloc(n * elem_row_bytes(ELEM_F32, s->k + Q8_BLOCK));
    const struct engine ref = open_engine("ref", 1);

    rng_normal(a, m * k, 1, rng_stream("a"), 0, 1);
    rng_normal(b, n * k, 1, rng_stream("b"), 0, 1);
    rng_normal(old, m * n, 1, rng_stream("old"), 0, 1);
    for (size_t l = 0; l < ARRAY_LEN(levels) && cpu_isa_unmasked() >= ISA_AVX2; l++)
        for (enum elem elem = ELEM_Q8; elem < ELEM_COUNT; elem++) {
            cpu_limit(levels[l]);
            const struct engine g =
                open_engine(cpu_isa() >= ISA_AVX512 ? "avx512" : "avx2", 1 + (s->m + s->n) % 2);
            narrow_weights(elem, w, b, s);
            for (int packs = 0; packs < 2; packs++)
                expect_sums(&g, &ref,
                            (struct gemm){.tb = true,
                                          .m = s->m,
                                          .n = s->n,
                                          .k = s->k,
                                          .alpha = 0.5f,
                                          .beta = packs ? 0 : -0.75f,
                                          .a = a,
                                          .lda = s->k,
                                          .ldb = s->k,
                                          .elem = elem,
                                          .b_narrow = w,
                                          .quantises = true,
                                          .ldc = s->n,
                                          .threads = g.threads},
                            packs, old);
        }
    free(w);
    free(old);
    free(b);
    free(a);
}

/* The mask hides it below the levels that have it; the row tells what ran. */
Test(int8_x86, instructions_are_named)
{
    if (cpu_isa_unmasked() < ISA_AVX512)
        cr_skip_test("no AVX-512 here");
    const struct engine g = open_engine("avx512", 1);
    cr_expect_str_eq(g.int8_by(), cpu_has_vnni_unmasked() ? "vpdpbusd" : "vpmaddwd");
    cpu_limit(ISA_AVX512);
    cr_expect_not(cpu_has_vnni());
    cr_expect_str_eq(g.int8_by(), "vpmaddwd");
}

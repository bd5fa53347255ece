/* SPDX-License-Identifier: MIT
 *
 * Each of oneDNN's implementations of attention by its name, against the reference: its results,
 * what it declines, and which one is chosen. */
#include "tests/support/attn_case.h"
#include "variants/backends/backend.h"

#if HAVE_ONEDNN
#include "variants/backends/onednn/compat.h"

/* Each implementation by its name, on dense operands of a layer and on ones with gaps. */
static void expect_attention(const char *impl, int threads, const struct scheme *t, bool dense)
{
    const struct shape shape = {2, 3, 3, 101, 30, 16};
    const ptrdiff_t row = (ptrdiff_t)shape.H * shape.dh;
    struct engine ref = open_engine("ref", 1), g;
    struct operands want, got;
    double worst = 0;
    struct err e;

    cr_assert_eq(engine_open(&g, "onednn", threads, impl, &e), OK, "%s", e.msg);
    make_operands(&want, &shape, t);
    make_operands(&got, &shape, t);
    for (int i = 0; dense && i < 2; i++) {
        struct attn *a = i ? &want.a : &got.a;
        a->q_at.row = a->k_at.row = a->v_at.row = a->o_at.row = row;
    }
    attend(&ref, &want.a);
    attend(&g, &got.a);
    const struct bound bound = attn_bound(&want);
    for (size_t i = 0; i < want.o_size; i++)
        worst = fmax(worst, in_bounds((double)got.o[i], (double)want.o[i], bound.out));
    for (size_t i = 0; i < want.lse_size; i++)
        worst = fmax(worst, in_bounds((double)got.lse[i], (double)want.lse[i], bound.lse));
    cr_expect_lt(worst, 1.0, "%s, %d threads, terms %d: %.2f x its bound", impl, threads, t->terms,
                 worst);
    free_operands(&want);
    free_operands(&got);
}

Test(onednn_attn, both_kinds_of_attention, .timeout = 60)
{
    static const struct scheme schemes[] = {
        {LSE, 0, 0, 0},
        {FULL | LSE, 0, 0, 0},
        {HAS_U | HAS_W | REL_K | PER_HEAD | LSE, ALL_KEYS, 0, 0},
        {REL_K | LSE, 5, 0, 0},
        {HAS_U | REL_K | BIAS | FULL | LSE, 21, 4, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
        for (int form = 0; form < 4; form++) {
            expect_attention("composed", 1 + (form & 1), &schemes[i], form & 2);
            if (generates(dnnl_cpu_isa_avx512_core))
                expect_attention("batched", 1 + (form & 1), &schemes[i], form & 2);
        }
}

/* The scores of all heads of a block exceed the cache: composed attention is better then. */
Test(onednn_attn, batched_attention_knows_its_limits, .timeout = 60)
{
    const struct engine g = open_engine("onednn", 1);
    struct attn a = {.B = 1, .H = 8, .Hkv = 8, .L = 128, .dh = 64, .causal = true, .scale = 1};
    const struct attn_impl *impl;
    struct err e;

    if (!generates(dnnl_cpu_isa_avx512_core))
        cr_skip_test("oneDNN generates no AVX-512 code here");
    cr_assert_eq(engine_attn(&g, &a, &impl, &e), OK, "%s", e.msg);
    cr_expect_str_eq(impl->name, "batched");
    a.M = 512;
    cr_assert_eq(engine_attn(&g, &a, &impl, &e), OK, "%s", e.msg);
    cr_expect_str_eq(impl->name, "composed");
    a.M = 0;
    a.L = 1;
    cr_assert_eq(engine_attn(&g, &a, &impl, &e), OK, "%s", e.msg);
    cr_expect_str_eq(impl->name, "composed");
}

#endif

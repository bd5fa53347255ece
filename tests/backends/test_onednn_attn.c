/* SPDX-License-Identifier: MIT
 *
 * Each of oneDNN's implementations of attention by its name, against the reference: its results,
 * what it declines, and which one is chosen. */
#include "tests/support/kernel/attn_case.h"

#if HAVE_ONEDNN
#include "variants/backends/onednn/compat.h"
#include "variants/backends/onednn/graph.h"

static const struct shape usual = {2, 3, 3, 101, 30, 16};

/* Each implementation by its name, on dense operands of a layer and on ones with gaps. */
static void expect_attention(const char *impl, int threads, const struct shape *shape,
                             const struct scheme *t, bool dense)
{
    const ptrdiff_t row = (ptrdiff_t)shape->H * shape->dh;
    struct engine ref = open_engine("ref", 1), g;
    struct operands want, got;
    double worst = 0;

    MUST(engine_open(&g, "onednn", threads, impl, &failure));
    make_operands(&want, shape, t);
    make_operands(&got, shape, t);
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

Test(onednn_attn, both_kinds_of_attention, .timeout = 240)
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
            expect_attention("composed", 1 + (form & 1), &usual, &schemes[i], form & 2);
            if (generates(dnnl_cpu_isa_avx512_core))
                expect_attention("batched", 1 + (form & 1), &usual, &schemes[i], form & 2);
        }
}

#if ONEDNN_HAS_GRAPH
/* Causal, windowed and full, with shared heads, one query, and keys that are not
 * ordered with the queries; the library's own work space is counted. */
Test(onednn_attn, as_a_graph, .timeout = 240)
{
    static const struct shape shapes[] = {
        {2, 3, 3, 101, 30, 16}, {2, 6, 2, 40, 0, 16}, {1, 4, 1, 1, 70, 32}, {3, 2, 2, 7, 9, 8}};
    static const struct scheme schemes[] = {
        {0, 0, 0, 0}, {FULL, 0, 0, 0}, {0, 0, 0, 21}, {FULL, 0, 0, 21}, {FULL | CROSS, 0, 0, 0},
    };
    for (size_t n = 0; n < ARRAY_LEN(shapes); n++)
        for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
            for (int threads = 1; threads <= 2; threads++)
                expect_attention("graph-sdpa", threads, &shapes[n], &schemes[i], false);
    expect_attention("graph-sdpa", 2, &usual, &schemes[0], true);
    const size_t scores = sizeof(float) * 16 * 16;
    cr_expect_gt(graph_held_bytes(), scores);
}
#endif

/* It returns no statistics, so training is not its; where the library has no graph, nothing is. */
Test(onednn_attn, a_graph_declines)
{
    static const float x = 0;
    struct attn a = {.B = 1, .H = 8, .Hkv = 8, .L = 16, .dh = 64, .causal = true, .scale = 1};
    float lse[8 * 16];
    const char *why = NULL;

    cr_expect_eq(attn_graph.accepts(&a, &why), ONEDNN_HAS_GRAPH);
    a.lse = lse;
    cr_expect_not(attn_graph.accepts(&a, &why));
    cr_expect(ONEDNN_HAS_GRAPH ? !!strstr(why, "log-sum-exp") : !!strstr(why, "oneDNN 3"), "%s",
              why);
    a.lse = NULL;
    a.dv = 32;
    cr_expect_not(attn_graph.accepts(&a, &why), "values of another width");
    a.dv = 0;
    a.bias = &x;
    cr_expect_not(attn_graph.accepts(&a, &why));
}

/* The scores of all heads of a block exceed the cache: composed attention is better then. */
Test(onednn_attn, batched_attention_knows_its_limits, .timeout = 240)
{
    const struct engine g = open_engine("onednn", 1);
    struct attn a = {.B = 1, .H = 8, .Hkv = 8, .L = 128, .dh = 64, .causal = true, .scale = 1};
    const struct attn_impl *impl;

    if (!generates(dnnl_cpu_isa_avx512_core))
        cr_skip_test("oneDNN generates no AVX-512 code here");
    MUST(engine_attn(&g, &a, &impl, &failure));
    cr_expect_str_eq(impl->name, "batched");
    a.M = 512;
    MUST(engine_attn(&g, &a, &impl, &failure));
    cr_expect_str_eq(impl->name, "composed");
    a.M = 0;
    a.L = 1;
    MUST(engine_attn(&g, &a, &impl, &failure));
    cr_expect_str_eq(impl->name, "composed");
}

#endif

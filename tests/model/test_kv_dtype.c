/* SPDX-License-Identifier: MIT
 *
 * A cache of narrower keys and values: every token reads the same numbers, however a text is cut.
 */
#include "tests/support/in_double.h"
#include "tests/support/kernel/simd.h"
#include "tests/support/loaded.h"
#include "tests/support/model.h"
#include "variants/model/lm/key_steps.h"

enum { TEXT = 400, BATCH = 2 };

/* Odd widths: rows of 5 or 15 numbers. */
static struct config narrow(const char *name, enum elem elem)
{
    struct config c = config_default(variant_find(name), 12, 3, 5, 17, 2, 11);

    c.max_seq = TEXT;
    if (c.pos == &pos_rope)
        set_number(&c, "rope_dim", 4);
    c.kv_dtype = elem;
    return c;
}

static float *logits(const struct config *c, const char *backend, int L, int M)
{
    return model_logits(c, backend, 1, MEM_KV, (struct extent){BATCH, L, M}, TEXT, L);
}

/* The reference computes each number in one order: the same bits. The kernels of few queries sum in
 * another order than those of many, so that a key may round to its neighbour, 2^-8 from it, in q8
 * 2^-7 of its head's largest: two roundings in each of two layers, in quadrature. The memory of a
 * window moves in its buffer, which has room for 256 rows more. */
static void expect_same_text(const char *backend, enum elem elem, double bound)
{
    EACH_TEXT (name, "rope", "gqa", "mqa", "llama", "window", "xl", "lazy")
        for (int window = 0; window <= 9; window += 9) {
            struct config c = narrow(name, elem);
            if (window)
                c.window = window;
            const int M = c.window ? c.window - 1 : TEXT;
            if (config_check(&c, NULL) != OK)
                continue;
            float *const one = logits(&c, backend, TEXT, M);
            const double size = largest(one, (size_t)(BATCH * TEXT * c.V));
            for (int L = 1; L <= 9; L += 4) {
                float *const many = logits(&c, backend, L, M);
                for (int i = 0; i < BATCH * TEXT * c.V; i++)
                    cr_assert_leq(fabs((double)many[i] - (double)one[i]), bound * size,
                                  "%s %s window %d, in pieces of %d: %g, not %g", backend, name,
                                  c.window, L, (double)many[i], (double)one[i]);
            }
        }
}

Test(kv_dtype, decoding_is_one_pass, .timeout = 120)
{
    expect_same_text("ref", ELEM_BF16, 0);
    expect_same_text("ref", ELEM_Q8, 0);
}

Test(kv_dtype, decoding_is_one_pass_within_rounding, .timeout = 120)
{
    EACH_TEXT (name, SIMD_LEVELS) {
        struct engine g;
        if (engine_open(&g, name, 1, NULL, &failure) == OK)
            for (enum elem elem = ELEM_BF16; elem <= ELEM_Q8; elem++)
                expect_same_text(name, elem, (elem == ELEM_Q8 ? 4 : 2) * 0x1p-8);
    }
}

/* Steps that 8 bits leave to a head's numbers, with and without a channel that is `times` as large. */
static struct key_steps steps_with(float times)
{
    enum { L = 16, D = 12 };
    struct config c = config_default(variant_find("alibi"), D, 3, 4, 17, 2, 11);
    struct engine g;
    struct lm m;
    int32_t ids[L];

    for (int i = 0; i < L; i++)
        ids[i] = i % 11;
    bind_model(&m, &g, &c, MEM_KV, (struct extent){1, L, L});
    params_init(&m.params, 1, 1);
    const struct param *const k = params_find(&m.params, "layers.1.attn.k.weight");
    cr_assert(k);
    for (int i = 0; i < D; i++)
        k->data[5 * D + i] *= times; /* number 1 of head 1 */
    lm_build_tables(&m, &g);
    cr_expect(isnan(key_steps(&m).steps));
    lm_forward(&m, &g, ids, 1, L, 1, NULL, NULL);
    lm_commit(&m, L);
    return key_steps(&m);
}

Test(kv_dtype, one_large_channel_leaves_few_steps)
{
    const struct key_steps usual = steps_with(1), large = steps_with(1000);

    cr_expect(usual.steps > 16 && usual.steps <= 127, "%g", usual.steps);
    cr_expect(large.steps > 0 && large.steps < 2, "%g", large.steps);
    NUMBERS({large.attention, 2}, {large.head, 2});
}

/* SPDX-License-Identifier: MIT
 *
 * Attention over a cache of slots: streams cut anywhere, with either memory; the rotary model where
 * nothing has been dropped; a memory that does not grow; no training. Its numbers are in a golden
 * file. */
#include "tests/support/every_backend.h"
#include "tests/support/model.h"

enum { T = 40, BATCH = 2, VOCAB = 11, SINKS = 2, WINDOW = 7, KEPT = SINKS + WINDOW - 1 };

static struct config model(const char *variant, int sinks, int window)
{
    struct config c = config_default(variant_find(variant), 12, 4, 6, 17, 2, VOCAB);

    c.kv_heads = 2;
    c.max_seq = T;
    c.stream_sinks = sinks;
    c.window = window;
    MUST(config_check(&c, &failure));
    return c;
}

static float *logits(const struct config *c, const char *backend, enum mem_kind kind, int L, int M)
{
    return model_logits(c, backend, 2, kind, (struct extent){BATCH, L, M}, T, L);
}

/* A cache that is longer than its slots changes nothing. */
TEST_EACH(int *b, attention_streaming, goes_on, every_backend(), .timeout = 240)
{
    static const int lengths[] = {1, 3, 16, T}, memories[] = {KEPT, KEPT + 20};
    static const enum mem_kind kinds[] = {MEM_KV, MEM_HIDDEN};
    const struct config c = model("streaming", SINKS, WINDOW);

    float *want = logits(&c, "ref", MEM_NONE, T, 0);
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
        for (size_t m = 0; m < ARRAY_LEN(memories); m++)
            for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
                expect_segments(&c, backends[*b]->name, kinds[k],
                                (struct extent){BATCH, lengths[i], memories[m]}, T, want, "slots");
}

/* Slots are positions until the cache is full; then a rotary model with the same keys differs. */
Test(attention_streaming, is_rope_until_keys_are_dropped)
{
    const struct config rope = model("rope", 0, 0), long_one = model("streaming", 3, T);
    const struct config small = model("streaming", SINKS, WINDOW);
    struct config masked = model("rope", 0, 0);

    cr_assert_eq(config_set_masks(&masked, masked.variant, "window=7,global=2", "", NULL), OK);
    float *plain = logits(&rope, "ref", MEM_NONE, T, 0),
          *all = logits(&long_one, "ref", MEM_KV, 1, T);
    float *few = logits(&small, "ref", MEM_NONE, T, 0),
          *seen = logits(&masked, "ref", MEM_NONE, T, 0);
    cr_expect_lt(case_error(all, plain, BATCH * T * VOCAB), 1);
    for (int t = 0; t < T; t++) {
        const double error = case_error(few + t * VOCAB, seen + t * VOCAB, VOCAB);
        cr_expect(t <= KEPT ? error < 1 : error > 1, "token %d: %.3g", t, error);
    }
}

Test(attention_streaming, memory_does_not_grow)
{
    const struct config c = model("streaming", SINKS, WINDOW);
    const size_t kv = (size_t)(2 * c.N * c.kv_heads * c.dh), D = (size_t)(c.N * c.D);

    cr_expect_eq(floats_remembered(&c, MEM_KV, 1, 5), 5 * kv);
    cr_expect_eq(floats_remembered(&c, MEM_KV, 1, 100), KEPT * kv);
    cr_expect_eq(floats_remembered(&c, MEM_KV, 1, 1000), KEPT * kv);
    cr_expect_eq(floats_remembered(&c, MEM_HIDDEN, 1, 1000), KEPT * D);
}

Test(attention_streaming, has_no_backward_pass)
{
    const struct config c = model("streaming", SINKS, WINDOW);
    struct model m;

    model_open(&m, &c, "ref", 1, MEM_HIDDEN, (struct extent){BATCH, 4, 8});
    REFUSED(lm_bind_grad(&m.lm, &m.g, &m.arena, &failure), E_UNSUPPORTED, "  -> ");
}

/* Numbers of --set. What else says where keys stand is refused: test_refusals.c. */
Test(attention_streaming, choices)
{
    struct config c = config_default(variant_find("streaming"), 12, 4, 6, 17, 2, VOCAB);

    cr_expect(c.stream_sinks == 4 && c.window == 1020);
    MUST(settings_parse(&c, "stream_sinks=3,window=9", false, &failure));
    cr_expect(c.stream_sinks == 3 && c.window == 9);
}

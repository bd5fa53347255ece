/* SPDX-License-Identifier: MIT
 *
 * What layers of attention with a window keep: of the keys and values of a stream, those that a
 * query of theirs can see; streams cut anywhere remain the same. */
#include "tests/support/every_backend.h"
#include "tests/support/model.h"

enum { T = 40, BATCH = 2, VOCAB = 11, WINDOW = 6 };

static struct config local(const char *variant)
{
    struct config c = config_default(variant_find(variant), 12, 4, 6, 17, 3, VOCAB);

    c.max_seq = T;
    c.layer_windows = (struct layer_list){2, {WINDOW, 0}};
    MUST(config_check(&c, &failure));
    return c;
}

/* What goes with keys goes with fewer of them: gates of forgetting, contextual positions, values of
 * the first layer, tables of distances. */
static const char *const all[] = {"gemma",          "sink",    "fox", "cope",  "diff",
                                  "value_residual", "alibi",   "xl",  "ssmax", "sigmoid-attention",
                                  "stickbreaking",  "softpick"};

TEST_EACH(int *b, attention_local, goes_on, every_backend(), .timeout = 240)
{
    static const int lengths[] = {1, 3, 16};

    for (size_t v = 0; v < ARRAY_LEN(all); v++) {
        const struct config c = local(all[v]);
        float *want = model_logits(&c, "ref", 2, MEM_HIDDEN, (struct extent){BATCH, T, T}, T, T);
        for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
            expect_segments(&c, backends[*b]->name, MEM_KV, (struct extent){BATCH, lengths[i], T},
                            T, want, all[v]);
    }
}

/* Two of three layers are local: with the new one, their caches have WINDOW rows. */
Test(attention_local, caches_are_as_long_as_windows)
{
    const struct config c = local("gemma");
    const size_t kv = (size_t)(2 * c.kv_heads * c.dh);

    cr_expect_eq(floats_remembered(&c, MEM_KV, 1, 3), 3 * 3 * kv);
    cr_expect_eq(floats_remembered(&c, MEM_KV, 1, 100), (100 + 2 * (WINDOW - 1)) * kv);
    cr_expect_eq(floats_remembered(&c, MEM_HIDDEN, 1, 100), (100 + 2 * (WINDOW - 1)) * (size_t)c.D);
}

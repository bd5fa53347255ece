/* SPDX-License-Identifier: MIT
 *
 * What layers of attention with a window keep: of the keys and values of a stream, those that a
 * query of theirs can see; streams cut anywhere remain the same. */
#include "tests/support/every_backend.h"
#include "tests/support/model.h"

#include <criterion/parameterized.h>

enum { T = 40, BATCH = 2, VOCAB = 11, WINDOW = 6 };

static struct config local(const char *variant)
{
    struct config c = config_default(variant_find(variant), 12, 4, 6, 17, 3, VOCAB);
    struct err e = {""};

    c.max_seq = T;
    c.layer_windows = (struct layer_list){2, {WINDOW, 0}};
    cr_assert_eq(config_check(&c, &e), OK, "%s", e.msg);
    return c;
}

static float *logits(const struct config *c, const char *backend, enum mem_kind kind, int L, int M)
{
    return model_logits(c, backend, 2, kind, (struct extent){BATCH, L, M}, T, L);
}

/* What goes with keys goes with fewer of them: gates of forgetting, contextual positions, values of
 * the first layer, tables of distances. */
static const char *const all[] = {"gemma", "sink",           "fox",   "cope",
                                  "diff",  "value_residual", "alibi", "xl"};

ParameterizedTestParameters(attention_local, goes_on) { return every_backend(); }
ParameterizedTest(int *b, attention_local, goes_on, .timeout = 240)
{
    static const int lengths[] = {1, 3, 16};

    if (backend_usable(backends[*b], NULL) != OK)
        cr_skip_test("not here");
    for (size_t v = 0; v < ARRAY_LEN(all); v++) {
        const struct config c = local(all[v]);
        float *want = logits(&c, "ref", MEM_HIDDEN, T, T);
        for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
            float *got = logits(&c, backends[*b]->name, MEM_KV, lengths[i], T);
            const double error = case_error(got, want, BATCH * T * VOCAB);
            cr_expect_lt(error, 1, "%s, %s, segments of %d: %.3g", all[v], backends[*b]->name,
                         lengths[i], error);
            free(got);
        }
        free(want);
    }
}

/* Floats of memory of all layers for one sequence. */
static size_t remembered(const struct config *c, enum mem_kind kind, int M)
{
    struct model m;

    model_open(&m, c, "ref", 1, kind, (struct extent){BATCH, 1, M});
    const size_t n = m.arena.part[PART_MEMORY] / sizeof(float) / (size_t)BATCH;
    model_close(&m);
    return n;
}

/* Two of three layers are local: with the new one, their caches have WINDOW rows. */
Test(attention_local, caches_are_as_long_as_windows)
{
    const struct config c = local("gemma");
    const size_t kv = (size_t)(2 * c.kv_heads * c.dh);

    cr_expect_eq(remembered(&c, MEM_KV, 3), 3 * 3 * kv);
    cr_expect_eq(remembered(&c, MEM_KV, 100), (100 + 2 * (WINDOW - 1)) * kv);
    cr_expect_eq(remembered(&c, MEM_HIDDEN, 100), (100 + 2 * (WINDOW - 1)) * (size_t)c.D);
}

/* A layer that adds the scores of the one before needs them for all keys. */
Test(attention_local, no_windows_of_layers_beside_scores_of_the_layer_before)
{
    struct config c = config_default(variant_find("realformer"), 12, 4, 6, 17, 3, VOCAB);

    cr_expect_eq(config_check(&c, NULL), OK);
    c.layer_windows = (struct layer_list){2, {WINDOW, 0}};
    cr_expect_eq(config_check(&c, NULL), E_USAGE);
}

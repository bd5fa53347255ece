/* SPDX-License-Identifier: MIT
 *
 * Attention to fewer keys than tokens: what its caches hold, where it is full attention, that it
 * does not look ahead, and what makes no sense. Its numbers are in golden files; that streams may
 * be cut anywhere is tested for all variants (test_lm.c). */
#include "tests/support/every_backend.h"
#include "tests/support/model.h"
#include "variants/model/settings.h"

#include <criterion/parameterized.h>

enum { T = 30, BATCH = 2, VOCAB = 11, DH = 6, HEADS = 4, KV_HEADS = 2, WIDTH = KV_HEADS * DH };

static struct config model(const char *variant, const char *numbers)
{
    struct config c = config_default(variant_find(variant), 12, HEADS, DH, 17, 2, VOCAB);
    struct err e = {""};

    c.kv_heads = KV_HEADS;
    c.max_seq = T;
    cr_assert_eq(settings_parse(&c, numbers, false, &e), OK, "%s", e.msg);
    cr_assert_eq(config_check(&c, &e), OK, "%s", e.msg);
    return c;
}

/* What a memory of M tokens takes, in floats of one layer and sequence. */
static size_t remembered(const struct config *c, int M)
{
    struct model m;

    model_open(&m, c, "ref", 1, MEM_KV, (struct extent){BATCH, 3, M});
    const size_t n = m.arena.part[PART_MEMORY] / sizeof(float) / (size_t)(BATCH * c->N);
    model_close(&m);
    return n;
}

/* Compressed rows of whole groups, plain ones of a group that is not complete; a pyramid. */
Test(condensed, caches_hold_what_is_compressed)
{
    const struct config lin = model("linformer", "rank=2,lin_block=5"),
                        mca = model("mca", "mca_stride=4"), bp = model("bp", "tree=2");

    cr_expect_eq(remembered(&lin, 103), 2 * WIDTH * (103 / 5 * 2 + 4));
    cr_expect_eq(remembered(&lin, 3), 2 * WIDTH * 3);
    cr_expect_eq(remembered(&mca, 103), 2 * WIDTH * (103 / 4 + 3));
    cr_expect_eq(remembered(&bp, 13), 2 * WIDTH * (3 + 8 + 10 + 6));
}

/* A row of level l is the mean of 2^l tokens. A query sees 2 or 3 nodes of a level, 3 (2^(l+1) - 1)
 * tokens with those of the levels below: rows that end a node in there are kept, if the node begins
 * in the memory. The means of a pyramid would be M more rows, and anew for each token. */
Test(condensed, a_tree_remembers_what_queries_can_see)
{
    const struct config bp = model("bp", "tree=2");
    size_t rows = 0;

    for (int l = 0; 2 * ((1 << l) - 1) < 1000 + 3; l++) {
        const int size = 1 << l, reach = 3 * (2 * size - 1);
        rows += (size_t)min_int(reach - size + 1, 1000 - size + 1);
    }
    cr_expect_eq(remembered(&bp, 1000), 2 * WIDTH * rows);
    cr_expect_lt(rows, 3 * 1000);
}

/* Token by token, long after the first ones have been dropped, and in longer pieces. */
Test(condensed, a_tree_slides)
{
    enum { KEPT = 21, LONG = 90 };
    for (int k = 1; k <= 3; k++) {
        char numbers[24];
        snprintf(numbers, sizeof(numbers), "tree=%d", k);
        struct config bp = model("bp", numbers);
        bp.max_seq = LONG;
        for (int piece = 1; piece <= 7; piece += 3) {
            const struct extent max = {BATCH, piece, KEPT};
            float *const want = model_logits(&bp, "ref", 1, MEM_HIDDEN, max, LONG, piece);
            float *const got = model_logits(&bp, "ref", 1, MEM_KV, max, LONG, piece);
            cr_expect_lt(case_error(got, want, BATCH * LONG * VOCAB), 1, "%s in pieces of %d",
                         numbers, piece);
            free(want), free(got);
        }
    }
}

/* The logits of T tokens, with weights that `change` has changed. */
static float *logits(const struct config *c, const char *backend, void (*change)(struct params *))
{
    struct model m;

    model_open(&m, c, backend, 2, MEM_NONE, (struct extent){BATCH, T, 0});
    if (change)
        change(&m.lm.params);
    float *const all = model_stream(&m, 0, BATCH, T, T);
    model_close(&m);
    return all;
}

static void make_identity(struct params *p)
{
    for (int i = 0; i < p->n; i++) {
        const struct param *const w = &p->v[i];
        if (strstr(w->name, "attn.proj_"))
            for (size_t k = 0; k < w->n; k++)
                w->data[k] = k / (size_t)w->shape[1] == k % (size_t)w->shape[1];
    }
}

/* Maps that change nothing, and a tree whose lowest level has everything. */
ParameterizedTestParameters(condensed, is_full_attention_in_the_limit) { return every_backend(); }
ParameterizedTest(int *b, condensed, is_full_attention_in_the_limit, .timeout = 240)
{
    const struct config lin = model("linformer", "rank=4,lin_block=4"),
                        bp = model("bp", "tree=100"), few = model("bp", "tree=2");
    struct config nope = model("nope", ""), vanilla = model("vanilla", "");
    const size_t n = BATCH * T * VOCAB;

    if (backend_usable(backends[*b], NULL) != OK)
        cr_skip_test("not here");
    nope.wiring = lin.wiring;
    nope.final_ln = lin.final_ln;
    nope.ffn = lin.ffn;
    nope.ffn_bias = lin.ffn_bias;
    nope.norm_kind = lin.norm_kind;
    nope.attn_bias = lin.attn_bias;
    float *const full = logits(&nope, "ref", NULL);
    float *const mapped = logits(&lin, backends[*b]->name, make_identity);
    float *const plain = logits(&vanilla, "ref", NULL);
    float *const tree = logits(&bp, backends[*b]->name, NULL);
    float *const sparse = logits(&few, backends[*b]->name, NULL);
    cr_expect_lt(case_error(mapped, full, n), 1);
    cr_expect_lt(case_error(tree, plain, n), 1);
    cr_expect_gt(case_error(sparse, plain, n), 1);
    free(full), free(mapped), free(plain), free(tree), free(sparse);
}

/* A token changes nothing before it. */
Test(condensed, does_not_look_ahead)
{
    static const char *const names[][2] = {
        {"linformer", "rank=2,lin_block=4"},
        {"mca", "mca_stride=3"},
        {"bp", "tree=2"},
        {"poolingformer", "pf_window=3,pf_wide=9,pf_kernel=3,pf_stride=2"}};

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct config c = model(names[i][0], names[i][1]);
        struct model m;
        int32_t tokens[T] = {0};
        float before[T * VOCAB];
        model_open(&m, &c, "ref", 1, MEM_NONE, (struct extent){1, T, 0});
        lm_build_tables(&m.lm, &m.g);
        for (int t = 0; t < T; t++)
            tokens[t] = token_of(&m, 0, t);
        lm_forward(&m.lm, &m.g, tokens, 1, T, T, NULL, NULL);
        memcpy(before, m.lm.logits, sizeof(before));
        for (int at = 0; at < T; at++) {
            tokens[at] = (tokens[at] + 1) % VOCAB;
            lm_forward(&m.lm, &m.g, tokens, 1, T, T, NULL, NULL);
            tokens[at] = (tokens[at] + VOCAB - 1) % VOCAB;
            cr_expect_eq(memcmp(before, m.lm.logits, sizeof(float) * (size_t)(at * VOCAB)), 0,
                         "%s: token %d", names[i][0], at);
            cr_expect_neq(memcmp(before, m.lm.logits, sizeof(before)), 0);
        }
        model_close(&m);
    }
}

Test(condensed, what_makes_no_sense_is_refused)
{
    struct config c = model("linformer", "");
    struct err e = {""};

    cr_expect_eq(settings_parse(&c, "lin_block=0", false, &e), OK);
    cr_expect_eq(config_check(&c, &e), E_USAGE);
    c.causal = DIRECTION_BOTH;
    cr_expect_eq(config_check(&c, &e), OK, "%s", e.msg);
    c = model("nystrom", "conv_taps=0");
    cr_expect_eq(settings_parse(&c, "conv_taps=4", false, &e), OK);
    cr_expect_eq(config_check(&c, &e), E_USAGE);
    c = model("mca", "");
    c.window = 3;
    cr_expect_eq(config_check(&c, &e), E_USAGE);
    c = model("bp", "");
    c.causal = DIRECTION_BOTH;
    cr_expect_eq(config_check(&c, &e), E_USAGE);
}

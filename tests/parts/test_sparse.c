/* SPDX-License-Identifier: MIT
 *
 * Sparse masks of models: their text, patterns that hide nothing, streams cut anywhere, memory that
 * no pattern can reach. The pattern itself is tested as a rule (test_mask.c) and by golden files.
 */
#include "tests/support/every_backend.h"
#include "tests/support/model.h"
#include "variants/parts/masks.h"

enum { T = 40, BATCH = 2, VOCAB = 11 };

static struct config sparse(const char *text, const char *heads)
{
    struct config c = config_default(variant_find("window"), 12, 3, 6, 17, 2, VOCAB);

    MUST(config_set_masks(&c, c.variant, text, heads, &failure));
    cr_assert_eq(config_check(&c, &failure), OK, "%s: %s", text, failure.msg);
    return c;
}

static float *logits(const struct config *c, const char *backend, enum mem_kind kind, int L, int M)
{
    return model_logits(c, backend, 1, kind, (struct extent){BATCH, L, M}, T, L);
}

static void expect_equal(const float *got, const float *want, const char *what, int L)
{
    for (int i = 0; i < BATCH * T * VOCAB; i++)
        cr_assert(got[i] == want[i], "%s, segments of %d: number %d is %.9g, not %.9g", what, L, i,
                  (double)got[i], (double)want[i]);
}

/* ---- text --------------------------------------------------------------------------------- */

Test(sparse, text_comes_back)
{
    static const char *const texts[][3] = {
        {"window=4", "", "0"},
        {"window=4;stride=4", "", "0,1"},
        {"window=3,dilation=3;block=3,back=1,global=3,random=2", "1,1,0", "1,1,0"},
        {"block=4;fixed=4,summary=1", "0", "0"},
        {"rect=2x3,row=6,margin=0x2;window=2,rect=1x1,row=4", "", "0,1"},
        {"back=0;window=4;back=0", "", "0,1,2"}, /* masks_check refuses it */
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct masks m;
        char text[MASK_TEXT], heads[MASK_TEXT];
        cr_assert_eq(masks_parse(&m, texts[i][0], texts[i][1], NULL), OK);
        masks_print(text, heads, &m);
        TEXTS({text, texts[i][0]}, {heads, texts[i][2]});
    }
}

Test(sparse, nonsense_is_refused)
{
    static const char *const unreadable[][2] = {
        {"window", ""},     {"window=", ""},    {"window=-1", ""},
        {"windows=4", ""},  {"window=4,", ""},  {"window=4;", ""},
        {"window=4 ", ""},  {";", ""},          {"rect=4", ""},
        {"rect=4x", ""},    {"rect=4x4x4", ""}, {"rect=-1x4", ""},
        {"window=4x4", ""}, {"window=4", "1"},  {"window=4", "0,"},
        {"window=4", "x"},  {"window=4", "-1"}, {"block=1;block=1;block=1;block=1;block=1", ""},
    };
    struct masks m;

    for (size_t i = 0; i < ARRAY_LEN(unreadable); i++) {
        failure.msg[0] = '\0';
        cr_expect_eq(masks_parse(&m, unreadable[i][0], unreadable[i][1], &failure), E_USAGE,
                     "%s %s", unreadable[i][0], unreadable[i][1]);
        HAS(failure.msg, "  -> ");
    }
    EACH_TEXT (senseless, "window=0", "dilation=2", "back=1", "window=3,random=1", "fixed=4",
               "fixed=4,summary=5", "window=3,summary=1", "rect=2x2", "rect=2x3,row=8",
               "rect=0x2,row=4", "window=3,row=4", "window=3,margin=1x1") {
        MUST(masks_parse(&m, senseless, "", &failure));
        cr_expect_eq(masks_check(&m, "who", &failure), E_USAGE, "%s", senseless);
        HAS(failure.msg, "  -> ");
    }
}

Test(sparse, every_sparse_variant_reads_its_own)
{
    int n = 0;

    for (int v = 0; variants[v]; v++) {
        const struct config c = config_default(variants[v], 48, 3, 16, 90, 2, VOCAB);
        cr_expect_eq(c.masks.n > 0, variants[v]->mask != NULL, "%s", variants[v]->name);
        n += c.masks.n > 0;
    }
    cr_expect_gt(n, 0);
}

/* ---- patterns ----------------------------------------------------------------------------- */

/* Patterns that let everything through change nothing. */
Test(sparse, all_that_hides_nothing_is_plain, .timeout = 240)
{
    struct config none = sparse("window=40", "");

    none.masks = (struct masks){0};
    float *want = logits(&none, "ref", MEM_NONE, T, 0);
    EACH_TEXT (text, "window=40", "window=40;stride=1", "block=40", "block=7,back=6",
               "fixed=5,summary=5", "global=40", "window=99,global=3", "window=40;block=64") {
        const struct config c = sparse(text, "");
        float *got = logits(&c, "ref", MEM_NONE, T, 0);
        expect_equal(got, want, text, T);
    }
}

static const char *const patterns[] = {
    "window=4",
    "window=3,dilation=3",
    "block=4",
    "block=3,back=1,global=3,random=2",
    "window=4,stride=4",
    "block=5;fixed=5,summary=2",
    "window=3,global=2;stride=7",
    "rect=2x2,row=6,margin=2x1",
    "rect=2x3,row=3,margin=1x0;rect=3x2,row=8",
};

/* Patterns count from the stream's start, so segments of any cut see the same; on the reference to
 * the last bit. */
static void stream(const char *pattern, const struct backend *b)
{
    const struct config c = sparse(pattern, "");
    float *want = logits(&c, "ref", MEM_NONE, T, 0);

    for (int kind = MEM_HIDDEN; kind <= MEM_KV; kind++)
        for (int L = 1; L <= 17; L += 4) {
            float *got = logits(&c, b->name, (enum mem_kind)kind, L, T);
            if (b == &backend_ref)
                expect_equal(got, want, pattern, L);
            cr_expect_lt(case_error(got, want, BATCH * T * VOCAB), 1, "%s, %s", pattern, b->name);
        }
}

TEST_EACH(int *b, sparse, streaming_is_one_pass, every_backend(), .timeout = 120)
{
    for (size_t p = 0; p < ARRAY_LEN(patterns); p++)
        stream(patterns[p], backends[*b]);
}

/* Rows that no future query can see need no memory: w r, or the blocks that are looked back at. */
Test(sparse, memory_that_is_out_of_reach, .timeout = 240)
{
    static const struct {
        const char *text;
        int M;
    } cases[] = {
        {"window=4", 3}, {"window=3,dilation=3", 6}, {"block=4", 3}, {"block=3,back=1", 5}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct config c = sparse(cases[i].text, "");
        float *want = logits(&c, "ref", MEM_NONE, T, 0);
        float *got = logits(&c, "ref", MEM_HIDDEN, 1, cases[i].M);
        expect_equal(got, want, cases[i].text, 1);
        float *less = logits(&c, "ref", MEM_HIDDEN, 1, cases[i].M - 1);
        cr_expect_neq(memcmp(less, want, sizeof(float) * BATCH * T * VOCAB), 0, "%s",
                      cases[i].text);
    }
}

/* A pattern changes the result, and heads have their own. */
Test(sparse, heads_take_masks_in_turn)
{
    const struct config in_turn = sparse("window=2;stride=5", "");
    const struct config said = sparse("window=2;stride=5", "0,1,0");
    const struct config other = sparse("window=2;stride=5", "1,0,1");
    const struct config swapped = sparse("stride=5;window=2", "");
    float *a = logits(&in_turn, "ref", MEM_NONE, T, 0), *b = logits(&said, "ref", MEM_NONE, T, 0);
    float *o = logits(&other, "ref", MEM_NONE, T, 0), *s = logits(&swapped, "ref", MEM_NONE, T, 0);

    expect_equal(b, a, "0,1,0", T);
    expect_equal(s, o, "1,0,1", T);
    cr_expect_neq(memcmp(a, o, sizeof(float) * BATCH * T * VOCAB), 0);
}

Test(sparse, random_blocks_lie_before)
{
    int differ = 0, apart = 0;

    for (int64_t q = 0; q < 50; q++)
        for (int x = 0; x < 3; x++) {
            const int32_t block = masks_random_block(1, q, 3, x);
            cr_expect(q ? block >= 0 && block < q : block == -1, "%d of %d", block, (int)q);
            differ += block != masks_random_block(2, q, 3, x);
            apart += block != masks_random_block(1, q, 3, 0);
        }
    cr_expect(differ > 0 && apart > 0, "layers and numbers draw on their own");
}

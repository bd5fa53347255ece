/* SPDX-License-Identifier: MIT
 *
 * Attention to fewer keys than tokens: what its caches hold, where it is full attention, and what
 * makes no sense. Its numbers are in golden files, which tokens meet in test_condensed_rows.c; that later
 * tokens change nothing and that streams may be cut anywhere is tested for all variants
 * (test_properties.c). */
#include "tests/support/every_backend.h"
#include "tests/support/model.h"

enum { T = 30, BATCH = 2, VOCAB = 11, DH = 6, HEADS = 4, KV_HEADS = 2, LAYERS = 2 };
enum { ROW = LAYERS * 2 * KV_HEADS * DH }; /* a key and a value of every layer */

static struct config model(const char *variant, const char *numbers)
{
    struct config c = config_default(variant_find(variant), 12, HEADS, DH, 17, LAYERS, VOCAB);

    c.kv_heads = KV_HEADS;
    c.max_seq = T;
    MUST(settings_parse(&c, numbers, false, &failure));
    MUST(config_check(&c, &failure));
    return c;
}

/* Compressed rows of whole groups, plain ones of a group that is not complete; a pyramid. */
Test(condensed, caches_hold_what_is_compressed)
{
    const struct config lin = model("linformer", "rank=2,lin_block=5"),
                        mca = model("mca", "mca_stride=4,mca_block=6"), bp = model("bp", "tree=2");

    cr_expect_eq(floats_remembered(&lin, MEM_KV, 3, 103), ROW * (103 / 5 * 2 + 4));
    cr_expect_eq(floats_remembered(&lin, MEM_KV, 3, 3), ROW * 3);
    /* every other layer is local */
    cr_expect_eq(floats_remembered(&mca, MEM_KV, 3, 103), ROW / 2 * (103 / 4 + 3 + 5));
    cr_expect_eq(floats_remembered(&bp, MEM_KV, 3, 13), ROW * (3 + 8 + 10 + 6));
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
    cr_expect_eq(floats_remembered(&bp, MEM_KV, 3, 1000), ROW * rows);
    cr_expect_lt(rows, 3 * 1000);
}

/* Token by token, long after the first ones have been dropped, and in longer pieces. */
Test(condensed, a_tree_slides)
{
    enum { KEPT = 21, LONG = 90 };
    for (int k = 1; k <= 3; k++) {
        const char *const numbers = kept_text("tree=%d", k);
        struct config bp = model("bp", numbers);
        bp.max_seq = LONG;
        for (int piece = 1; piece <= 7; piece += 3) {
            const struct extent max = {BATCH, piece, KEPT};
            float *const want = model_logits(&bp, "ref", 1, MEM_HIDDEN, max, LONG, piece);
            expect_segments(&bp, "ref", MEM_KV, max, LONG, want, numbers);
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
    return all;
}

static void make_identity(struct params *p)
{
    for (const struct param *w = p->v; w < p->v + p->n; w++) {
        if (strstr(w->name, "attn.proj_"))
            for (size_t k = 0; k < w->n; k++)
                w->data[k] = k / (size_t)w->shape[1] == k % (size_t)w->shape[1];
    }
}

/* Maps that change nothing, and a tree whose lowest level has everything. */
TEST_EACH(int *b, condensed, is_full_attention_in_the_limit, every_backend(), .timeout = 240)
{
    const struct config lin = model("linformer", "rank=4,lin_block=4"),
                        bp = model("bp", "tree=100"), few = model("bp", "tree=2");
    struct config nope = model("nope", ""), vanilla = model("vanilla", "");
    const size_t n = BATCH * T * VOCAB;

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
}

/* Whatever has planned the case. */
Test(condensed, whole_texts_have_no_past)
{
    static const enum mem_kind kinds[] = {MEM_HIDDEN, MEM_KV};

    EACH_TEXT (name, "set", "etc", "nystrom", "poolingformer", "synthesizer")
        for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
            struct config c = config_default(variant_find(name), 12, HEADS, DH, 17, 2, VOCAB);
            struct model m = {.g = open_engine("ref", 1)};
            c.max_seq = T;
            MUST(lm_init(&m.lm, &c, &failure));
            REFUSED(model_bind(&m, kinds[k], (struct extent){1, 4, 4}, false, &failure),
                    E_UNSUPPORTED, "  -> use --mem");
            lm_free(&m.lm);
        }
}

Test(condensed, taps_are_odd)
{
    struct config c = model("nystrom", "conv_taps=0");

    MUST(settings_parse(&c, "conv_taps=4", false, &failure));
    REFUSED(config_check(&c, &failure), E_USAGE, "taps");
}

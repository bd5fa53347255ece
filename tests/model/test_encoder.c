/* SPDX-License-Identifier: MIT
 *
 * An encoder in front of a model: what its decoder sees of it, and the same numbers by every
 * backend. Golden files compare them, tests/model/test_grad_lm.c the gradients. */
#include "tests/support/every_backend.h"
#include "tests/support/model.h"
#include "variants/model/lm/encoder.h"

enum { BATCH = 2, SOURCE = 7, TOKENS = 4, MOST_SEEN = 3 };

static struct config with_encoder(const struct variant *v)
{
    struct config c = config_default(v, 12, 3, 4, 17, 2, 11);

    c.enc_layers = 3;
    c.max_seq = SOURCE;
    c.final_ln = wiring_norms_first(c.wiring);
    return c;
}

struct encoded {
    struct model m;
    int32_t source[BATCH * SOURCE], tokens[BATCH * TOKENS], targets[BATCH * TOKENS];
};

static void open_encoded(struct encoded *t, const struct config *c, const char *backend,
                         int threads)
{
    model_open(&t->m, c, backend, threads, MEM_NONE, (struct extent){BATCH, TOKENS, SOURCE});
    for (int i = 0; i < BATCH * SOURCE; i++)
        t->source[i] = token_of(&t->m, i / SOURCE, i % SOURCE);
    for (int i = 0; i < BATCH * TOKENS; i++)
        t->tokens[i] = t->targets[i] = token_of(&t->m, 5, i);
    t->m.lm.source = t->source;
}

/* The logits. */
static float *run(struct encoded *t)
{
    lm_forward(&t->m.lm, &t->m.g, t->tokens, BATCH, TOKENS, TOKENS, t->targets, t->m.nll);
    return copied(t->m.lm.logits, (size_t)(BATCH * TOKENS * t->m.lm.c.V));
}

/* Of row `i` of all, those of sequence 0 first. */
static bool same_row(const float *a, const float *b, int i, int width)
{
    return memcmp(a + i * width, b + i * width, sizeof(*a) * (size_t)width) == 0;
}

Test(encoder, each_row_of_the_decoder_reads_the_whole_source)
{
    const struct config c = with_encoder(variant_find("vanilla"));
    struct encoded t;

    open_encoded(&t, &c, "ref", 1);
    float *const before = run(&t);
    for (int k = 0; k < SOURCE; k++) {
        t.source[k] = (t.source[k] + 1) % c.V;
        float *const after = run(&t);
        t.source[k] = (t.source[k] + c.V - 1) % c.V;
        for (int i = 0; i < BATCH * TOKENS; i++)
            cr_expect_eq(same_row(before, after, i, c.V), i >= TOKENS, "source %d, row %d", k, i);
    }
    for (int k = 0; k < TOKENS; k++) {
        t.tokens[k] = (t.tokens[k] + 1) % c.V;
        float *const after = run(&t);
        t.tokens[k] = (t.tokens[k] + c.V - 1) % c.V;
        for (int i = 0; i < TOKENS; i++)
            cr_expect_eq(same_row(before, after, i, c.V), i < k, "token %d, row %d", k, i);
    }
}

/* The first row that the encoder leaves depends on the last token. */
Test(encoder, sees_its_text_in_both_directions)
{
    const struct config c = with_encoder(variant_find("xl"));
    struct encoded t;
    struct drive_result of;
    float first[12];

    open_encoded(&t, &c, "ref", 1);
    (void)run(&t);
    cr_assert(lm_result(&t.m.lm, 0, &of) && of.n == (size_t)(BATCH * SOURCE * c.D));
    memcpy(first, of.real, sizeof(first));
    t.source[SOURCE - 1] = (t.source[SOURCE - 1] + 1) % c.V;
    (void)run(&t);
    cr_expect_neq(memcmp(first, of.real, sizeof(first)), 0);
}

/* What does not count may be anything, and rows that count are attended to in any order of texts
 * without positions. */
Test(encoder, rows_beyond_the_length_do_not_count)
{
    static const int32_t seen[BATCH] = {MOST_SEEN, 5};
    struct config c = with_encoder(variant_find("vanilla"));
    struct encoded t;

    c.enc_padded = true;
    open_encoded(&t, &c, "ref", 1);
    t.m.lm.source_seen = seen;
    float *const before = run(&t);
    t.source[MOST_SEEN] = (t.source[MOST_SEEN] + 1) % c.V;
    t.source[SOURCE + 6] = (t.source[SOURCE + 6] + 1) % c.V;
    float *const after = run(&t);
    cr_expect_arr_eq(before, after, sizeof(*after) * (size_t)(BATCH * TOKENS * c.V));
}

/* Equal shares of all states at first; a share of one for the last is what an encoder without them
 * leaves. */
Test(encoder, transparent_reads_all_layers)
{
    struct config c = with_encoder(variant_find("vanilla"));
    struct encoded plain, sums;

    open_encoded(&plain, &c, "ref", 1);
    c.transparent = TRANSPARENT_TOP;
    open_encoded(&sums, &c, "ref", 1);
    float *const want = run(&plain), *const all = run(&sums);
    cr_expect_gt(case_error(all, want, (size_t)(BATCH * TOKENS * c.V)), 1);
    const struct param *const w = params_find(&sums.m.lm.params, "transparent.weight");
    cr_assert(w && w->n == 2 * 4);
    for (int j = 0; j < 2; j++)
        w->data[j * 4 + 3] = 40;
    float *const last = run(&sums);
    cr_expect_lt(case_error(last, want, (size_t)(BATCH * TOKENS * c.V)), 1);
}

TEST_EACH(int *b, encoder, agrees_with_the_reference, every_backend(), .timeout = 120)
{
    int n = 0;

    for (int v = 0; variants[v]; v++) {
        const struct config c = with_encoder(variants[v]);
        struct encoded own, ref;
        if (config_check(&c, NULL) != OK)
            continue;
        open_encoded(&own, &c, backends[*b]->name, 3);
        open_encoded(&ref, &c, "ref", 1);
        float *const got = run(&own), *const want = run(&ref);
        const double off = case_error(got, want, (size_t)(BATCH * TOKENS * c.V));
        cr_expect_lt(off, 1, "%s on %s: %g", variants[v]->name, backends[*b]->name, off);
        n++;
    }
    cr_expect_gt(n, 20);
}

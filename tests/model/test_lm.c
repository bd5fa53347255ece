/* SPDX-License-Identifier: MIT
 *
 * The language model and its recurrence: results that must be equal, and are to the last bit on the
 * reference, whose rows do not depend on their neighbours. Golden files test that they are right;
 * this suite that they are the same for every memory, batch, segment and position of every wiring.
 */
#include "tests/support/model.h"
#include "tests/support/named.h"
#include "variants/model/attention/sublayer_attention.h"

enum { TEXT = 26 };

/* Rows of memory at present; those that are expected where no layer has any. */
static int remembered(const struct lm *m, int expected)
{
    const struct sublayer *const first = sublayers_attention(&m->sublayers, 0);

    if (!first)
        return expected;
    return attention_memory(first) == attention_kept(first, expected) ? expected : -1;
}

static void expect_same(const float *got, const float *want, size_t n, const char *what, int x,
                        int y)
{
    for (size_t i = 0; i < n; i++)
        cr_assert(got[i] == want[i], "%s: %s %d, %d: number %zu is %.9g, not %.9g", form_now, what,
                  x, y, i, (double)got[i], (double)want[i]);
}

/* The same keys in other segments. What forgetting adds to a key's scores is relative to the
 * segment's end, so there it is rounded elsewhere: as close as another backend. */
static void expect_stream(const struct config *c, const float *got, const float *want, size_t n,
                          const char *what, int x, int y)
{
    if (!around_has(c, SLOT_term_forget))
        expect_same(got, want, n, what, x, y);
    cr_assert_lt(case_error(got, want, n), 1.0, "%s: %s %d, %d", form_now, what, x, y);
}

/* The logits of B sequences from b0 on, by a fresh model on the reference. */
static float *logits_of(const struct config *c, enum mem_kind kind, int M, int b0, int B, int T,
                        int L)
{
    struct model m;

    model_open(&m, c, "ref", 1, kind, (struct extent){B, L, M});
    float *all = model_stream(&m, b0, B, T, L);
    const int rows = kind == MEM_NONE ? 0 : min_int(T, M);

    cr_assert_eq(remembered(&m.lm, rows), rows);
    return all;
}

/* ---- memory ------------------------------------------------------------------------------- */

/* Memory that is still growing, full, and shorter than a segment. */
EACH_FORM(lm, keys_are_as_good_as_hidden_states, true)
{
    static const int M[] = {1, 5, 40}, L[] = {1, 7};

    for (size_t i = 0; i < ARRAY_LEN(M); i++)
        for (size_t k = 0; k < ARRAY_LEN(L); k++) {
            const struct config c = wired(w, (int)(i + k));
            if (SANITIZED && (i + k) % 2)
                continue;
            const size_t n = (size_t)(2 * TEXT * c.V);
            float *hidden = logits_of(&c, MEM_HIDDEN, M[i], 0, 2, TEXT, L[k]);
            float *kv = logits_of(&c, MEM_KV, M[i], 0, 2, TEXT, L[k]);
            expect_same(kv, hidden, n, "kv is not hidden: mem, seq", M[i], L[k]);
            for (int b = 1; backends[b]; b++) {
                struct model m;
                if (backends[b]->adds != ELEM_F32 || backend_usable(backends[b], NULL) != OK)
                    continue;
                for (enum mem_kind kind = MEM_HIDDEN; kind <= MEM_KV; kind++) {
                    model_open(&m, &c, backends[b]->name, 1, kind, (struct extent){2, L[k], M[i]});
                    float *got = model_stream(&m, 0, 2, TEXT, L[k]);
                    cr_assert_lt(case_error(got, hidden, n), 1.0, "%s: %s, %s, mem %d, seq %d",
                                 form_now, backends[b]->name, mem_kind_name[kind], M[i], L[k]);
                }
            }
        }
}

/* Memory that reaches back to the start, in segments or token by token: one long segment. */
EACH_FORM(lm, streaming_is_one_pass, true)
{
    for (int turn = 0; turn < 4; turn += SANITIZED ? 3 : 1) {
        struct config c = wired(w, turn);
        if (c.recur == RECUR_SAME) /* cuts matter: what left a layer is remembered at each */
            continue;
        choose_where_it_can(&c, &c.clamp_len, turn % 2 ? 9 : 0);
        float *one = logits_of(&c, MEM_NONE, 0, 0, 2, TEXT, TEXT);
        for (int L = 1; L <= 9; L += 4)
            for (enum mem_kind kind = MEM_HIDDEN; kind <= MEM_KV; kind++) {
                float *many = logits_of(&c, kind, TEXT, 0, 2, TEXT, L);
                expect_stream(&c, many, one, (size_t)(2 * TEXT * c.V), "seq, kind", L, (int)kind);
            }
    }
}

/* A window of w keys needs the w-1 last states only, at any depth. */
EACH_FORM(lm, window_needs_no_more_memory, true)
{
    for (int window = 1; window <= 9; window += 4) {
        struct config c = wired(w, window / 4);
        c.window = window;
        if (c.recur == RECUR_SAME) /* cuts matter */
            continue;
        if (c.stream_sinks || config_check(&c, NULL) != OK) /* sinks, too; a mixer has no windows */
            continue;
        float *one = logits_of(&c, MEM_NONE, 0, 0, 1, TEXT, TEXT);
        float *many = logits_of(&c, MEM_HIDDEN, window, 0, 1, TEXT, 3);
        expect_stream(&c, many, one, (size_t)(TEXT * c.V), "window, -", window, 0);
    }
}

/* A forward that is not committed leaves no trace, nor does what is forgotten. */
EACH_FORM(lm, forward_leaves_memory, true)
{
    for (enum mem_kind kind = MEM_HIDDEN; kind <= MEM_KV; kind++) {
        const struct config c = wired(w, (int)kind);
        const size_t n = (size_t)(2 * 4 * c.V);
        struct model m;
        model_open(&m, &c, "ref", 1, kind, (struct extent){2, 4, 6});
        (void)model_stream(&m, 0, 2, 12, 4);
        model_segment(&m, 0, 2, 12, 4, 4);
        float *const first = copied(m.lm.logits, n);
        const float nll = m.nll[7];
        model_segment(&m, 0, 2, 77, 3, 3);
        model_segment(&m, 0, 2, 12, 4, 4);
        expect_same(m.lm.logits, first, n, "second run, kind", 2, (int)kind);
        cr_expect(m.nll[7] == nll && guards_intact(m.nll, 8) && remembered(&m.lm, 6) == 6, "%s",
                  form_now);
        lm_forget(&m.lm);
        cr_expect_eq(remembered(&m.lm, 0), 0);
        (void)model_stream(&m, 0, 2, 12, 4);
        model_segment(&m, 0, 2, 12, 4, 4);
        expect_same(m.lm.logits, first, n, "forgotten, kind", 2, (int)kind);
    }
}

/* ---- sequences ---------------------------------------------------------------------------- */

EACH_FORM(lm, batch_is_its_sequences, false)
{
    for (enum mem_kind kind = MEM_NONE; kind <= MEM_KV; kind++) {
        const struct config c = wired(w, (int)kind);
        const size_t n = (size_t)(TEXT * c.V);
        const int L = kind == MEM_NONE ? TEXT : 5, M = kind == MEM_NONE ? 0 : 8;
        if (kind != MEM_NONE && !variant_mem(c.variant)->recurrent)
            continue;
        float *all = logits_of(&c, kind, M, 0, 3, TEXT, L);
        for (int b = 0; b < 3; b++) {
            float *one = logits_of(&c, kind, M, b, 1, TEXT, L);
            expect_same(all + (size_t)b * n, one, n, "sequence, kind", b, (int)kind);
        }
    }
}

/* Scoring fewer positions changes nothing but how many come out. */
EACH_FORM(lm, last_positions_are_the_last, false)
{
    const struct config c = wired(w, 3);
    const int V = c.V, L = 9;
    struct model m;

    model_open(&m, &c, "ref", 1, MEM_NONE, (struct extent){2, L, 0});
    float *all = model_stream(&m, 0, 2, L, L);
    for (int scored = 1; scored <= L; scored += 4) {
        model_segment(&m, 0, 2, 0, L, scored);
        for (int b = 0; b < 2; b++)
            expect_same(m.lm.logits + b * scored * V, all + (b * L + L - scored) * V,
                        (size_t)(scored * V), "scored, sequence", scored, b);
    }
}

/* nll = logsumexp - logit of the target, from the logits of the same run; a float holds it to U of
 * its size. */
Test(lm, nll_is_of_its_logits)
{
    const struct config c = config_default(variant_find("xl"), 12, 2, 6, 20, 2, 11);
    struct model m;

    model_open(&m, &c, "ref", 1, MEM_HIDDEN, (struct extent){2, 6, 4});
    (void)model_stream(&m, 0, 2, 12, 6);
    model_segment(&m, 0, 2, 12, 6, 6);
    for (int row = 0; row < 12; row++) {
        const float *x = m.lm.logits + row * c.V;
        double sum = 0;
        for (int v = 0; v < c.V; v++)
            sum += exp((double)x[v]);
        const double want = log(sum) - (double)x[token_of(&m, row / 6, 12 + row % 6 + 1)];
        cr_expect_float_eq(m.nll[row], want, 2 * U * fabs(want) + 1e-12);
    }
}

/* Logits in blocks of rows: the same losses, bit by bit on the reference, whose rows do not know of
 * each other; and room for one block. */
Test(lm, blocks_of_logits)
{
    enum { L = 9, ROWS = 2 * L };
    static const bool final_norm[] = {false, true};

    for (size_t k = 0; k < ARRAY_LEN(final_norm); k++) {
        struct config c = config_default(variant_find("xl"), 12, 2, 6, 20, 2, 1000);
        struct arena all = {0}, few = {0};
        struct model m;
        struct lm blocks;
        float whole[ROWS];
        c.final_ln = final_norm[k];
        model_open(&m, &c, "ref", 1, MEM_NONE, (struct extent){2, L, 0});
        model_segment(&m, 0, 2, 0, L, L);
        memcpy(whole, m.nll, sizeof(whole));
        for (int block = 1; block <= ROWS + 1; block += 5) {
            m.lm.block = block;
            memset(m.nll, 0, sizeof(whole));
            model_segment(&m, 0, 2, 0, L, L);
            cr_expect_eq(memcmp(whole, m.nll, sizeof(whole)), 0, "blocks of %d", block);
        }
        MUST(lm_init(&blocks, &c, &failure));
        cr_assert_eq(lm_bind(&blocks, &m.g, MEM_NONE, (struct extent){2, L, 0}, &all, &failure),
                     OK);
        blocks.block = 4;
        cr_assert_eq(lm_bind(&blocks, &m.g, MEM_NONE, (struct extent){2, L, 0}, &few, &failure),
                     OK);
        cr_expect_geq(all.used - few.used, (ROWS - 4) * 1000 * sizeof(float) - 4096);
        lm_free(&blocks);
    }
}

/* ---- settings that change nothing --------------------------------------------------------- */

static void expect_equal_models(const struct config *c, const struct config *d, const char *what)
{
    const bool recurrent = variant_mem(c->variant)->recurrent;
    const enum mem_kind kind = recurrent ? MEM_HIDDEN : MEM_NONE;
    const int M = recurrent ? 7 : 0, L = recurrent ? 5 : TEXT;
    float *x = logits_of(c, kind, M, 0, 2, TEXT, L), *y = logits_of(d, kind, M, 0, 2, TEXT, L);

    expect_same(x, y, (size_t)(2 * TEXT * c->V), what, c->clamp_len, c->window);
}

/* K is 12 at most where there is memory, TEXT elsewhere; distances reach K - 1. */
EACH_FORM(lm, limits_beyond_the_keys_change_nothing, false)
{
    const struct config c = wired(w, 1);
    const int K = variant_mem(c.variant)->recurrent ? 12 : TEXT;
    struct config d = c;

    for (int far = 0; far < 2; far++) {
        d.clamp_len = far ? 1000000 : K - 1;
        if (config_check(&d, NULL) == OK)
            expect_equal_models(&c, &d, "clamp_len");
        d.clamp_len = 0;
        d.window = far ? 1 << 30 : K;
        if (config_check(&d, NULL) == OK)
            expect_equal_models(&c, &d, "window");
        d.window = 0;
    }
}

/* Shaw's full table is its causal one plus rows that are never read. */
Test(lm, future_rows_are_never_read)
{
    struct config c = config_default(variant_find("shaw"), 12, 3, 5, 17, 2, 11);
    struct model m, n;

    c.clip = 4, c.rel_rows = 5;
    model_open(&m, &c, "ref", 1, MEM_HIDDEN, (struct extent){1, 5, 9});
    c.rel_rows = 9;
    model_open(&n, &c, "ref", 1, MEM_HIDDEN, (struct extent){1, 5, 9});
    for (const struct param *from = m.lm.params.v; from < m.lm.params.v + m.lm.params.n; from++) {
        const struct param *to = params_find(&n.lm.params, from->name);
        cr_assert(to && to->n >= from->n);
        for (size_t x = 0; x < to->n; x++)
            to->data[x] = x < from->n ? from->data[x] : NAN;
    }
    float *x = model_stream(&m, 0, 1, TEXT, 5), *y = model_stream(&n, 0, 1, TEXT, 5);
    expect_same(x, y, (size_t)(TEXT * c.V), "-", 0, 0);
}

/* The logits at t of a text whose first segment is that of sequence `first`. */
static float *after(const struct config *c, enum mem_kind kind, int L, int M, int t, int first,
                    bool *all)
{
    struct model m;

    model_open(&m, c, "ref", 1, kind, (struct extent){1, L, M});
    for (int at = 0; at <= t; at += L) {
        model_segment(&m, at ? 0 : first, 1, at, L, L);
        lm_commit(&m.lm, L);
    }
    *all = lm_reaches_all(&m.lm);
    return copied(m.lm.logits, (size_t)(L * c->V));
}

/* Layer by layer rows of memory reach M further back, and a segment on the way. */
Test(lm, what_is_out_of_reach_changes_nothing, .timeout = 120)
{
    enum { N = 2, M = 3, L = 4, OUT = 20 }; /* beyond N M + (N - 1) (L - 1) of the first segment */
    static const enum mem_kind kinds[] = {MEM_HIDDEN, MEM_KV, MEM_STATE};
    int near = 0, far = 0;

    for (int v = 0; variants[v]; v++) {
        struct config c = config_default(variants[v], 12, 3, 4, 17, N, 11);
        c.max_seq = 64;
        c.exit_window = 0; /* windows end where calls do */
        for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
            bool all = false;
            c.mem_len = M;
            if (!c.causal || config_mem(&c)->cached || !mem_can(config_mem(&c), kinds[k]) ||
                config_check(&c, NULL) != OK)
                continue;
            float *const one = after(&c, kinds[k], L, M, OUT, 0, &all);
            float *const other = after(&c, kinds[k], L, M, OUT, 1, &all);
            const bool same = memcmp(one, other, sizeof(float) * (size_t)(L * c.V)) == 0;
            cr_expect(same || all, "%s, %s", variants[v]->name, mem_kind_name[kinds[k]]);
            near += same;
            far += !same;
        }
    }
    cr_expect(near > 20 && far > 10, "%d and %d", near, far);
}

/* ---- the output and the positions --------------------------------------------------------- */

Test(lm, untied_with_the_embedding_is_tied)
{
    struct config c = config_default(variant_find("shaw"), 12, 3, 5, 17, 2, 11);
    struct model m;
    float *tied = logits_of(&c, MEM_HIDDEN, 7, 0, 1, TEXT, 5);

    c.tied = false;
    model_open(&m, &c, "ref", 1, MEM_HIDDEN, (struct extent){1, 5, 7});
    float *own = model_stream(&m, 0, 1, TEXT, 5);
    cr_expect_gt(case_error(own, tied, (size_t)(TEXT * c.V)), 1.0, "out.weight is not read");
    memcpy(data_of(&m.lm.params, "out.weight"), data_of(&m.lm.params, "embed.weight"),
           sizeof(float) * 12 * 11);
    own = model_stream(&m, 0, 1, TEXT, 5);
    expect_same(own, tied, (size_t)(TEXT * c.V), "-", 0, 0);
}

/* What a layer remembers of a segment is what left it: the input of the next. */
Test(lm, a_layer_may_remember_what_left_it)
{
    for (int pre = 0; pre < 2; pre++) {
        struct config c = config_default(variant_find("erniedoc"), 12, 2, 6, 16, 3, 11);
        struct model m;
        c.wiring = pre ? WIRING_PRE : WIRING_POST;
        c.max_seq = 4;
        model_open(&m, &c, "ref", 1, MEM_HIDDEN, (struct extent){2, 4, 6});
        model_segment(&m, 0, 2, 0, 4, 4);
        const struct sublayer *const last = sublayers_attention(&m.lm.sublayers, 2);
        const float *const left = last->left;
        cr_assert_not_null(left);
        cr_expect_eq(memcmp(left, m.lm.h, sizeof(float) * 2 * 4 * 12), 0, "without a final norm");
        lm_commit(&m.lm, 4);
        for (int b = 0; b < 2; b++)
            cr_expect_eq(
                memcmp(cache_rows(&last->memory, b), left + b * 4 * 12, sizeof(float) * 4 * 12), 0);
    }
}

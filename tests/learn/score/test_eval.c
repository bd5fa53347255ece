/* SPDX-License-Identifier: MIT
 *
 * Scoring texts: small random checkpoints, where the same model run another way gives the answer,
 * and a trained one with scores by the published code ($BENCH_SHARED/models). */
#include "tests/support/model.h"
#include "tests/support/score_line.h"
#include "tests/support/tmp_folder.h"

#include "variants/model/checkpoint/checkpoint.h"

/* ---- a small checkpoint and a small text --------------------------------------------------- */

enum { BYTES = 60, VOCABULARY = 256 };
static char ckpt[FILE_PATH], text[FILE_PATH];
static uint8_t bytes[BYTES];

static struct config small(const char *variant)
{
    struct config c = config_default(variant_find(variant), 8, 2, 3, 12, 2, VOCABULARY);

    c.max_seq = 10;
    return c;
}

/* A model of `c` with random weights on disk, as `ckpt`. */
static void save(const struct config *c)
{
    struct model m;
    const struct provenance from = {.unit = "byte"};

    model_open(&m, c, "ref", 1, MEM_NONE, (struct extent){1, c->max_seq, 0});
    MUST(checkpoint_save(ckpt, c, &m.lm.params, &from, &failure));
}

static void setup(void)
{
    folder_make();
    folder_path(ckpt, "model.safetensors");
    folder_path(text, "text");
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)rng_u32(SEED, rng_stream("bytes"), (uint64_t)i);
    folder_put("text", bytes, BYTES);
}

/* Of `ckpt` on `text`; ref unless the format names a backend. */
static struct report must_score(const char *fmt, int seq, int mem)
{
    struct report r;

    const char *const more = kept_text(fmt, seq, mem);
    MUST(score_line(&r, &failure, "--ckpt %s --corpus %s %s%s", ckpt, text,
                    strstr(more, "-b ") ? "" : "-b ref ", more));
    return r;
}

/* Sums of the same floats in another order. */
static void expect_equal(double got, double want, const char *what, int x)
{
    cr_expect_float_eq(got, want, 1e-12 * fabs(want), "%s %d: %.15g, not %.15g", what, x, got,
                       want);
}

TestSuite(eval, .init = setup, .fini = folder_remove);

Test(eval, counts_tokens_and_segments)
{
    const struct config c = small("xl");

    save(&c);
    for (int seq = 1; seq <= 64; seq += 7) {
        const struct report r = must_score("--seq %d --mem %d", seq, 4);
        cr_expect_eq(r.tokens_counted, BYTES - 1);
        cr_expect_eq(r.segments, (BYTES - 1 + seq - 1) / seq, "seq %d", seq);
        cr_expect(seq > BYTES ? isnan(r.nll_low) : r.nll_low < r.nll && r.nll < r.nll_high);
        cr_expect(isnan(r.nll_floor) && r.eval_ns > 0);
    }
    cr_expect_eq(must_score("--seq %d --mem %d --bytes 20", 8, 4).tokens_counted, 19);
    cr_expect_eq(must_score("--seq %d --mem %d --bytes 2", 8, 4).segments, 1);
}

/* Of one segment, the sum of the first k tokens is k times the mean of a text of k + 1 bytes, and
 * the places 2^i to 2^(i+1)-1 are differences of such sums. Of several, their counts weigh the
 * means. */
Test(eval, loss_by_place_in_the_segment)
{
    const struct config c = small("xl");
    double sum[32] = {0};

    save(&c);
    for (int k = 1; k < 32; k++)
        sum[k] = k * must_score(kept_text("--seq %%d --mem %%d --bytes %d", k + 1), 32, 0).nll;
    const struct report one = must_score("--seq %d --mem %d --bytes 32", 32, 0);
    double at[SCORE_PLACES];
    score_places(&one, at);
    for (int i = 0, first = 1; i < 5; i++, first *= 2) {
        const double want = (sum[2 * first - 1] - sum[first - 1]) / first;
        cr_expect_float_eq(at[i], want, 1e-12 * 32 * want, "place %d: %g, not %g", i, at[i], want);
    }
    for (int i = 5; i < SCORE_PLACES; i++)
        cr_expect(isnan(at[i]));
    /* 59 tokens in segments of 8: the last has 3. */
    static const int count[] = {8, 16, 28, 7};
    const struct report r = must_score("--seq %d --mem %d", 8, 4);
    double total = 0;
    score_places(&r, at);
    for (int i = 0; i < 4; i++)
        total += count[i] * at[i];
    expect_equal(total / (BYTES - 1), r.nll, "places", 8);
    cr_expect(isnan(at[4]));
}

/* If memory covers the past, any cut of the text and any kind of memory equal one pass. */
Test(eval, segments_with_memory_are_one_pass)
{
    EACH_TEXT (name, "xl", "shaw", "gtrxl") {
        const struct config c = small(name);
        save(&c);
        const double want = must_score("--seq %d --mem %d", BYTES, 0).nll;
        for (int seq = 1; seq < BYTES; seq += 11) {
            expect_equal(must_score("--seq %d --mem %d", seq, 64).nll, want, name, seq);
            expect_equal(must_score("--seq %d --mem %d --mem-kind kv", seq, 64).nll, want, name,
                         seq);
        }
        cr_expect_neq(must_score("--seq %d --mem %d", 7, 3).nll, want, "memory does not matter");
        expect_equal(must_score("--seq %d --mem %d --mem-kind kv", 7, 3).nll,
                     must_score("--seq %d --mem %d --mem-kind hidden", 7, 3).nll, name, 3);
    }
}

/* Without recurrence every segment sees the M bytes before it, positions from the window's start.
 */
static void check_windows(const struct config *c, int L, int M)
{
    int32_t tokens[BYTES], target;
    struct model m;
    double sum = 0;

    model_open(&m, c, "ref", 1, MEM_NONE, (struct extent){1, L + M, 0});
    lm_build_tables(&m.lm, &m.g);
    for (int t = 0; t < BYTES - 1; t++) { /* byte by byte, each from the window of its segment */
        const int at = t / L * L, start = max_int(0, at - M), n = t - start + 1;
        for (int i = 0; i < n; i++)
            tokens[i] = bytes[start + i];
        target = bytes[t + 1];
        lm_forward(&m.lm, &m.g, tokens, 1, n, 1, &target, m.nll);
        sum += (double)m.nll[0];
    }
    expect_equal(must_score("--seq %d --mem %d", L, M).nll, sum / (BYTES - 1), "seq", L);
    expect_equal(must_score("--seq %d --mem %d --mem-kind recompute", L, M).nll, sum / (BYTES - 1),
                 "seq", L);
}

/* Where positions are learned their table is that of training, for any past within the window. */
Test(eval, windows_run_again)
{
    static const struct {
        const char *variant;
        int L, M;
    } cases[] = {{"vanilla", 7, 5}, {"vanilla", 4, 10}, {"vanilla", 1, 3}, {"vanilla", BYTES, 0},
                 {"tupe", 7, 3},    {"tupe", 1, 9},     {"learned", 7, 3}, {"learned", 1, 9}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct config c = small(cases[i].variant);
        save(&c);
        check_windows(&c, cases[i].L, cases[i].M);
    }
}

/* A state that forgets nothing has absorbed the last M bytes and no more, with either name; all of
 * the past, in segments of any length, is one pass. One that decays is carried. */
Test(eval, sums_hold_the_last_tokens_or_all)
{
    EACH_TEXT (which, "linear", "performer", "aan") {
        const struct config c = small(which);
        cr_assert_eq(strcmp(c.pos->name, "sinusoid"), 0);
        save(&c);
        check_windows(&c, 7, 5);
        check_windows(&c, 1, 3);
        check_windows(&c, BYTES, 0);
        const double all = must_score("--seq %d --mem %d", BYTES, 0).nll;
        for (int seq = 1; seq < BYTES; seq += 11) /* floats add up in another order */
            cr_expect_float_eq(must_score("--seq %d --mem all", seq, 0).nll, all, 1e-6 * all,
                               "%s %d", which, seq);
        cr_expect_float_neq(must_score("--seq %d --mem %d", 7, 5).nll, all, 1e-4 * all);
    }
    const struct config c = small("retnet");
    save(&c);
    expect_equal(must_score("--seq %d --mem all", 7, 0).nll,
                 must_score("--seq %d --mem %d", 7, 5).nll, "retnet", 7);
}

Test(eval, backends_agree)
{
    const struct config c = small("gtrxl");

    save(&c);
    const double want = must_score("--seq %d --mem %d", 9, 12).nll;
    for (int i = 0; backends[i]; i++) {
        if (backend_usable(backends[i], NULL) != OK)
            continue;
        const char *const fmt = kept_text("-b %s --seq %%d --mem %%d", backends[i]->name);
        cr_expect_float_eq(must_score(fmt, 9, 12).nll, want, 1e-4 * want, "%s", backends[i]->name);
    }
}

/* Episodes of ten symbols end with an answer, whose floor is what the model can reach. */
Test(eval, answers_are_scored_apart)
{
    static const struct {
        const char *variant, *more;
        bool sees;
    } cases[] = {{"vanilla", "--seq 4 --mem 0", false}, {"vanilla", "--seq 4 --mem 8", true},
                 {"linear", "--seq 4 --mem 8", true},   {"linear", "--seq 4 --mem all", true},
                 {"linear", "--seq 4 --mem 0", false},  {"retnet", "--seq 2 --mem 1", true},
                 {"xl", "--seq 2 --mem 1", false},      {"xl", "--seq 2 --mem 6", true}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct config c = small(cases[i].variant);
        struct report
            r[3]; /* of the text up to an answer, up to the symbol before it, and of more */
        static const int n[] = {40, 39, 1001};
        c.V = 11;
        save(&c);
        for (size_t k = 0; k < ARRAY_LEN(r); k++) {
            MUST(score_line(&r[k], &failure,
                            "--ckpt %s --corpus cue:gap=7,alphabet=5 --bytes %d -b ref %s", ckpt,
                            n[k], cases[i].more));
            cr_expect_eq(r[k].answers, n[k] / 10);
            cr_expect_float_eq(r[k].answer_blind, log(5), 1e-12, "whatever is in reach");
            cr_expect_float_eq(r[k].answer_floor, cases[i].sees ? 0 : log(5), 1e-12, "%s %s",
                               cases[i].variant, cases[i].more);
        }
        const double last = r[0].nll * 39 - r[1].nll * 38;
        cr_expect_float_eq(r[0].answer_nll * 4 - r[1].answer_nll * 3, last, 1e-9, "%s %s: %g",
                           cases[i].variant, cases[i].more, last);
    }
    const struct config c = small("vanilla");
    save(&c);
    const struct report r = must_score("--seq %d --mem %d", 7, 0);
    NUMBERS({r.answers, 0}, {r.answer_nll, NAN}, {r.answer_floor, NAN}, {r.answer_blind, NAN});
}

static void expect_refused(const char *more, enum status want, const char *part)
{
    struct report r;

    REFUSED(score_line(&r, &failure, "--ckpt %s --corpus %s -b ref %s", ckpt, text, more), want,
            part, "  -> ");
}

/* A checkpoint with another threshold is the checkpoint that was saved with it. */
Test(eval, choices_without_weights)
{
    struct config c = small("exit");
    double layers[2] = {0};

    save(&c);
    for (int all = 0; all < 2; all++) {
        const char *const more = kept_text("--seq %%d --mem %%d --exit-tau %s", all ? "0" : "1");
        const struct report with = must_score(more, 8, 4);
        layers[all] = with.layers_run;
        c.exit_tau = all ? 0 : 1;
        save(&c);
        expect_equal(must_score("--seq %d --mem %d", 8, 4).nll, with.nll, "tau", all);
    }
    NUMBERS({layers[0], 1}, {layers[1], c.N});
    c = small("xl");
    save(&c);
    cr_expect(isnan(must_score("--seq %d --mem %d", 8, 4).layers_run));
}

Test(eval, refuses_what_the_model_cannot)
{
    struct config c = small("xl");

    save(&c);
    expect_refused("--seq 4 --mem 4 --mem-kind recompute", E_USAGE,
                   "--mem-kind recompute does not apply to xl  -> use hidden or kv");
    expect_refused("--seq 4 --mem 4 --bytes 1", E_USAGE, text);
    c = small("vanilla");
    save(&c);
    expect_refused("--seq 4 --mem 4 --mem-kind kv", E_USAGE,
                   "--mem-kind kv does not apply to vanilla  -> use recompute");
    expect_refused("--seq 4 --mem all", E_USAGE, "--mem all does not apply to vanilla");
    c = small("linear");
    save(&c);
    expect_refused("--seq 4 --mem all --mem-kind recompute", E_USAGE, "--mem all");
    c = small("learned");
    save(&c);
    expect_refused("--seq 8 --mem 3", E_USAGE, "has positions for 10 tokens, --seq 8 --mem 3");
    cr_expect_gt(must_score("--seq %d --mem %d", 8, 2).nll, 0);
    c = small("xl");
    c.V = 255;
    save(&c);
    expect_refused("--seq 4 --mem 4", E_IO, "vocabulary of 255");
    unlink(ckpt);
    expect_refused("--seq 4 --mem 4", E_IO, ckpt);
}

/* ---- a trained model ----------------------------------------------------------------------- */

static int memories[] = {0, 128};

/* Rows of models/README.md: 65536 bytes of tinyshakespeare, segments of 128. */
static double score_of(const char *backend, int mem, int n)
{
    const char *shared = getenv("BENCH_SHARED");
    struct report r;

    shared = shared ? shared : "../shared";
    const char *const model = kept_text("%s/models/xl-books.safetensors", shared);
    const char *const corpus = kept_text("%s/corpora/tinyshakespeare.txt", shared);
    if (access(model, R_OK) != 0 || access(corpus, R_OK) != 0)
        cr_skip_test("no %s or %s", model, corpus);
    MUST(score_line(&r, &failure, "--ckpt %s --corpus %s --bytes %d --seq 128 --mem %d -b %s",
                    model, corpus, n, mem, backend));
    NUMBERS({r.tokens_counted, n - 1}, {r.segments, n / 128});
    return r.nll;
}

/* The fastest backend scores all, and the others a part as it does; the reference takes minutes. */
TEST_EACH(int *mem, eval_trained, scores_of_the_published_code, EVERY(memories), .timeout = 120)
{
    enum { ALL = 65536, PART = ALL / 8 };
    const char *const fastest = lookup_fastest(backends, ELEM_F32)->name;

    SKIP_SANITIZED("half a minute each, and other tests run the same code");
    NUMBERS_OF(fastest, {score_of(fastest, *mem, ALL), *mem ? 2.096637 : 2.151388, 1e-4});
    const double want = score_of(fastest, *mem, PART);
    for (int i = 0; backends[i]; i++)
        if (backends[i] != &backend_ref && backends[i]->adds == ELEM_F32 &&
            backend_usable(backends[i], NULL) == OK)
            NUMBERS_OF(backends[i]->name, {score_of(backends[i]->name, *mem, PART), want, 1e-4});
}

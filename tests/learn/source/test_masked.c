/* SPDX-License-Identifier: MIT
 *
 * Masked language models: what is hidden, and that each variant which can see a whole text learns
 * to fill it in. */
#include "harness/learn/source/masked.h"
#include "harness/plan/lookup.h"
#include "tests/support/open_trainer.h"
#include "tests/support/sanitized.h"
#include "tests/support/score_line.h"
#include "tests/support/tmp_folder.h"

TestSuite(masked, .init = folder_make, .fini = folder_remove);

/* ---- what is hidden ------------------------------------------------------------------------ */

Test(masked, hides_as_many_as_asked_in_order)
{
    enum { N = 40, MASK = 99 };

    for (int count = 1; count <= N; count += 13)
        for (uint64_t window = 0; window < 20; window++) {
            int32_t x[N], y[N], at[N], was[N], again[N];
            int hidden = 0;
            for (int i = 0; i < N; i++)
                x[i] = y[i] = i % 7;
            masked_hide(count, 3, window, MASK, x, N, at, was);
            for (int i = 0; i < N; i++)
                hidden += x[i] == MASK;
            cr_expect_eq(hidden, count);
            for (int k = 0; k < count; k++) {
                cr_expect(at[k] >= 0 && at[k] < N && (k == 0 || at[k] > at[k - 1]));
                cr_expect(x[at[k]] == MASK && was[k] == y[at[k]]);
            }
            masked_hide(count, 3, window, MASK, y, N, again, was);
            cr_expect_eq(memcmp(x, y, sizeof(x)), 0, "the same seed and window");
        }
}

/* Each place of 20 windows' worth of draws: binomial, 5 standard deviations. */
Test(masked, hides_every_place_as_often)
{
    enum { N = 10, COUNT = 3, WINDOWS = 20000 };
    int often[N] = {0};
    const double p = (double)COUNT / N, mean = WINDOWS * p, sd = sqrt(WINDOWS * p * (1 - p));

    for (uint64_t window = 0; window < WINDOWS; window++) {
        int32_t x[N] = {0}, at[N], was[N];
        masked_hide(COUNT, 1, window, 9, x, N, at, was);
        for (int k = 0; k < COUNT; k++)
            often[at[k]]++;
    }
    for (int i = 0; i < N; i++)
        cr_expect_float_eq(often[i], mean, 5 * sd, "place %d: %d", i, often[i]);
}

Test(masked, counts_a_share)
{
    NUMBERS({masked_count(0.15, 100), 15}, {masked_count(0.15, 1), 1}, {masked_count(1e-9, 100), 1},
            {masked_count(1, 100), 100});
}

/* ---- training ------------------------------------------------------------------------------ */

/* Neighbours are alike: what is hidden stands beside it. */
static struct options parse(const struct variant *v, const char *more)
{
    struct options o;

    const char *const line =
        kept_text("train --variant %s%s --objective mlm --mem 0 --backend ref --threads 1 --seq 24 "
                  "--batch 4 --layers 2 --d-model 16 --heads 2 --pin none --lr 0.01 --lr-warmup 3 "
                  "--steps 60 --corpus copy:lag=1,p=0.95,alphabet=7 --ckpt unused %s",
                  v->name, v->bidirectional ? "" : " --direction both", more);
    cr_assert_eq(options_parse_line(&o, line, &failure), OK, "%s: %s", v->name, failure.msg);
    kept_copy(&o, sizeof(o));
    return o;
}

static bool sees_both(const struct variant *v)
{
    const struct config c = config_default(v, 16, 2, 8, 64, 2, 8);

    /* Losses of next tokens only have no hidden ones. */
    return v->bidirectional || (config_can_look_ahead(&c) && !v->aux_layers);
}

/* Every one of them gets a perplexity of a checkpoint, and so does the next process. */
Test(masked, every_variant_that_sees_both_learns)
{
    int n = 0;

    for (int i = 0; variants[i]; i++) {
        const struct variant *const v = variants[i];
        struct trainer t;
        if (!sees_both(v) || (SANITIZED && !v->bidirectional))
            continue;
        n++;
        struct options o = parse(v, "");
        o.backends.v[0] = lookup_fastest(backends, ELEM_F32)->name;
        cr_assert_eq(trainer_open(&t, &o, &failure), OK, "%s: %s", v->name, failure.msg);
        const double first = training_mean(&t, 10),
                     last = (training_mean(&t, 40), training_mean(&t, 10));
        t.valid.n = 400;
        const struct validation valid = trainer_validate(&t);
        cr_expect(last < first, "%s: %g nats, then %g", v->name, first, last);
        cr_expect(isfinite(valid.nll) && isnan(valid.floor), "%s: %g", v->name, valid.nll);
    }
    cr_expect_gt(n, 8);
}

/* Symbols are as likely as each other, so no model that sees no neighbour is below ln 7, but for the
 * 600 tokens' own shares, which are worth 3/600 nats. Both neighbours leave 0.07 nats; after so few
 * steps a model is between the two. */
Test(masked, a_neighbour_tells_what_is_hidden)
{
    struct trainer t;

    SKIP_SANITIZED("hundreds of steps that other tests take, too");
    struct options o = parse(variant_find("bert"), "");
    training_open(&t, &o);
    t.valid.n = 4000;
    training_mean(&t, 600);
    const double nll = trainer_validate(&t).nll;
    cr_expect_lt(nll, 0.75 * log(7), "%g nats, of ln 7 without context", nll);
}

/* ---- scoring ------------------------------------------------------------------------------- */

#define EVAL "-b ref --corpus copy:lag=1,p=0.95,alphabet=7 --bytes 2001 --seq 20 --ckpt %s "

/* Nats of the hidden tokens of 2001 symbols in windows of 20, one by one, symbol 3 `front` times in front of
 * them, which is not hidden; and means by their places, 1, 2-3, 4-7, ... */
static double by_hand(struct trainer *t, const char *corpus, int front, double at[SCORE_PLACES])
{
    enum { N = 2001, SEQ = 20 };
    double sum = 0, n[SCORE_PLACES] = {0};
    struct corpus text;

    memset(at, 0, sizeof(n));
    MUST(corpus_open(&text, corpus, SPLIT_TEST, N, &failure));
    lm_build_tables(&t->valid_lm, &t->engine);
    for (int w = 0, i = 0; i < N + front - 1; w++) {
        int32_t tokens[SEQ], place[SEQ], was[SEQ];
        float nll[SEQ];
        const int given = i ? 0 : front;
        int read = 0;
        for (; read < SEQ && i < N + front - 1; i++)
            tokens[read++] = i < front ? 3 : text.bytes[i - front];
        const int hidden = masked_count(0.3, read - given);
        masked_hide(hidden, MASKED_SCORED, (uint64_t)w, 7, tokens + given, read - given, place,
                    was);
        for (int k = 0; k < hidden; k++)
            place[k] += given;
        t->valid_lm.picked = place;
        t->valid_lm.n_picked = hidden;
        lm_forward(&t->valid_lm, &t->engine, tokens, 1, read, read, was, nll);
        for (int k = 0; k < hidden; k++) {
            const int power = ilogb(place[k] - given + 1);
            at[power] += (double)nll[k];
            n[power]++;
            sum += (double)nll[k];
        }
    }
    for (int k = 0; k < SCORE_PLACES; k++)
        at[k] /= n[k];
    corpus_close(&text);
    return sum;
}

Test(masked, a_checkpoint_is_scored_as_it_was_trained)
{
    struct trainer t;
    struct report r, again;

    const char *const path = in_folder("m.safetensors");
    struct options o = parse(variant_find("bert"), "--mask-share 0.3");
    training_open(&t, &o);
    training_mean(&t, 60);
    training_save(&t, path);
    cr_assert_eq(score_line(&r, &failure, EVAL "--mem 0", path), OK);
    cr_assert_eq(score_line(&again, &failure, EVAL "--mem 0", path), OK);
    cr_expect_eq(r.tokens_scored, 100 * 6, "0.3 of 20 tokens in each of 100 windows: %g",
                 r.tokens_scored);
    cr_expect(r.tokens_counted == r.tokens_scored && r.nll_sum == again.nll_sum &&
              r.nll_sum / r.tokens_counted == r.nll);
    cr_expect_str_eq(r.token_is, "masked symbol");
    cr_expect(isnan(r.words) && isnan(r.text_bytes) && isnan(r.nll_floor));

    for (int front = 0; front <= 1; front++) {
        double at[SCORE_PLACES], places[SCORE_PLACES];
        const double sum = by_hand(&t, o.corpus, front, at);
        cr_assert_eq(score_line(&r, &failure, EVAL "--mem 0 --bos %s", path, front ? "3" : "none"),
                     OK);
        cr_expect_float_eq(r.nll_sum, sum, 1e-9 * sum, "%.9g, %.9g", r.nll_sum, sum);
        score_places(&r, places);
        for (int k = 0; k < 5; k++)
            cr_expect_float_eq(places[k], at[k], 1e-9 * at[k], "place %d", 1 << k);
    }

    REFUSED(score_line(&r, &failure, EVAL "--mem 8", path), E_USAGE,
            "of whole windows, without a past");
    cr_expect_eq(score_line(&r, &failure, EVAL "--mem 0 --count hf", path), E_USAGE);
    cr_expect_eq(score_line(&r, &failure, EVAL "--mem 0 --unit byte", path), E_USAGE);
    cr_expect_eq(score_line(&r, &failure, EVAL "--mem 0 --losses x", path), E_USAGE);
    cr_expect_eq(score_line(&r, &failure, EVAL "--mem 0 --batch 2", path), E_USAGE);
}

Test(masked, goes_on_to_the_same_bits)
{
    struct trainer t;

    const char *const path = in_folder("half.safetensors");
    struct options o = parse(variant_find("bert"), "");
    expect_goes_on(&o, path, 4, 9, "bert");
    o.mask_share = 0.5;
    training_open(&t, &o);
    cr_expect_eq(trainer_load(&t, path, &failure), E_USAGE, "%s", failure.msg);
}

/* ---- what has no meaning ------------------------------------------------------------------- */

Test(masked, is_of_models_that_see_what_follows)
{
    static const struct {
        const char *line;
        enum status want;
    } tries[] = {
        {"--variant linear --objective mlm --mem 0", E_UNSUPPORTED},
        {"--variant xl --objective mlm --mem 0", E_UNSUPPORTED},
        {"--variant xl --objective mlm --mem 0 --direction both", OK},
        {"--variant xl --objective mlm --mem 8 --direction both", E_USAGE},
        {"--variant bert --mem 0", E_UNSUPPORTED},
        {"--variant xl --mem 0 --direction both", E_UNSUPPORTED},
        {"--variant bert --mem 0 --objective mlm", OK},
    };

    for (size_t i = 0; i < ARRAY_LEN(tries); i++) {
        struct options o;
        struct config c;
        const char *const line =
            kept_text("train --ckpt unused --seq 8 --batch 1 --layers 1 %s", tries[i].line);
        MUST(options_parse_line(&o, line, &failure));
        const struct variant *const v = variant_find(o.variants.v[0]);
        cr_expect_eq(train_config(&c, v, &o, 7, &failure), tries[i].want, "%s: %s", line,
                     failure.msg);
        if (tries[i].want == OK)
            cr_expect_eq(c.V, 7 + (o.objective == OBJECTIVE_MLM));
        options_free(&o);
    }
}

/* SPDX-License-Identifier: MIT
 *
 * Encoders and decoders: pairs of a generated text, training to their floor, files that go on to the
 * same bits, and scores of checkpoints. */
#include "tests/support/open_trainer.h"
#include "tests/support/sanitized.h"
#include "tests/support/score_line.h"
#include "tests/support/tmp_folder.h"

TestSuite(train_pairs, .init = folder_make, .fini = folder_remove);

#define TEXT "translate:n=5,alphabet=6"

static enum status settle(struct options *o, const char *more, struct err *e)
{
    char line[600];

    snprintf(
        line, sizeof(line),
        "train --objective seq2seq --backend ref --threads 1 --batch 8 --layers 1 --d-model 16 "
        "--heads 2 --pin none --lr 0.01 --lr-warmup 3 --steps 200 --ckpt unused %s",
        more);
    cr_assert_eq(options_parse_line(o, line, e), OK, "%s", e->msg);
    const enum status st = train_settle(o, 1, e);
    kept_copy(o, sizeof(*o));
    return st;
}

static void open_trainer(struct trainer *t, const char *more)
{
    struct options o;

    MUST(settle(&o, more, &failure));
    training_begin(t, o);
}

/* ---- pairs --------------------------------------------------------------------------------- */

Test(train_pairs, are_what_their_source_says)
{
    struct corpus c;
    struct pairs p;
    int32_t source[4], tokens[4], targets[4];

    MUST(corpus_open(&c, "reverse:n=4,alphabet=9", SPLIT_TEST, 901, &failure));
    MUST(pairs_of(&p, &c, &failure));
    cr_expect(p.source == 4 && p.target == 4 && p.n == 100);
    for (size_t i = 0; i < p.n; i++) {
        float nll[4] = {0};
        struct answers a = {0};
        pairs_read(&p, c.bytes, i, source, tokens, targets);
        cr_expect_eq(tokens[0], 9, "the mark");
        for (int k = 0; k < 4; k++) {
            cr_expect_eq(targets[k], source[3 - k]);
            cr_expect(k == 0 || tokens[k] == targets[k - 1]);
        }
        cr_expect(pairs_floor(&p, &c, i, nll, &a) == 0 && a.tokens == 4);
    }
    corpus_close(&c);
    MUST(corpus_open(&c, "copy:lag=3", SPLIT_TEST, 100, &failure));
    REFUSED(pairs_of(&p, &c, &failure), E_USAGE, "reverse:", "sort:");
    corpus_close(&c);
}

/* The dictionary is that of all splits. */
Test(train_pairs, translations_have_one_dictionary)
{
    int map[7] = {0};

    for (int split = 0; split < SPLIT_COUNT; split++) {
        struct corpus c;
        struct pairs p;
        int32_t source[5], tokens[5], targets[5];
        MUST(corpus_open(&c, TEXT, (enum split)split, 1100, &failure));
        MUST(pairs_of(&p, &c, &failure));
        for (size_t i = 0; i < p.n; i++) {
            pairs_read(&p, c.bytes, i, source, tokens, targets);
            for (int k = 0; k < 5; k++) {
                int *const to = &map[source[k]];
                cr_expect(*to == 0 || *to == targets[k] + 1);
                *to = targets[k] + 1;
            }
        }
        corpus_close(&c);
    }
}

/* The first of equal ones counts as the most likely. */
Test(train_pairs, right_is_what_is_most_likely)
{
    static const float logits[] = {0, 2, 1, 3, 3, 3, -5, -4, -4.5f, 1, 0, 0};
    static const int32_t targets[] = {1, 0, 2, 1};

    NUMBERS({pairs_right(logits, targets, 4, 3), 2}, {pairs_right(logits, targets, 2, 3), 2});
}

/* ---- training ------------------------------------------------------------------------------ */

/* Deterministic targets have no loss. A decoder that reads no source stays at ln 6. */
Test(train_pairs, the_loss_goes_to_its_floor, .timeout = 240)
{
    static const char *const lines[] = {("--variant vanilla --corpus " TEXT),
                                        "--variant xl --norm pre --corpus reverse:n=4,alphabet=5",
                                        "--variant rope --corpus sort:n=4,alphabet=5"};

    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct trainer t;
        if (SANITIZED && i > 0)
            break;
        open_trainer(&t, lines[i]);
        const double first = training_mean(&t, 3);
        training_mean(&t, SANITIZED ? 20 : 900);
        const struct validation v = trainer_validate(&t);
        cr_expect_gt(first, 1.3, "%s: %g", lines[i], first);
        cr_expect(SANITIZED || v.nll < 0.4, "%s: %g nats", lines[i], v.nll);
        cr_expect_eq(v.floor, 0, "%s: floor %g", lines[i], v.floor);
        /* a token that is not the most likely one has at most half of the probability */
        cr_expect(v.accuracy <= 1 && 1 - v.accuracy <= v.nll / log(2), "%s: %g right, %g nats",
                  lines[i], v.accuracy, v.nll);
        cr_expect_float_eq(v.answers.nll, v.nll, 1e-9, "%s: all targets are answers", lines[i]);
    }
}

Test(train_pairs, goes_on_to_the_same_bits)
{
    struct options o;

    MUST(settle(&o, "--variant shaw --dropout 0.1 --set enc_layers=2 --corpus " TEXT, &failure));
    expect_goes_on(&o, in_folder("half.safetensors"), 4, 9, "shaw");
}

/* ---- scoring ------------------------------------------------------------------------------- */

#define EVAL "-b ref --bytes 1100 --ckpt %s "

Test(train_pairs, a_checkpoint_is_scored_pair_by_pair)
{
    struct trainer t;
    struct report r;
    struct corpus text;
    struct pairs p;
    double sum = 0;
    int right = 0;

    const char *const path = in_folder("m.safetensors");
    open_trainer(&t, "--variant learned --corpus " TEXT);
    training_mean(&t, 20);
    training_save(&t, path);
    MUST(score_line(&r, &failure, EVAL "--seq 5 --mem 0 --corpus " TEXT, path));
    NUMBERS({r.tokens_counted, 500}, {r.nll_floor, 0}, {r.text_bytes, NAN}, {r.segments, 100});
    cr_expect_str_eq(r.token_is, PAIRS_UNIT);

    MUST(corpus_open(&text, TEXT, SPLIT_TEST, 1100, &failure));
    MUST(pairs_of(&p, &text, &failure));
    lm_build_tables(&t.valid_lm, &t.engine);
    for (size_t i = 0; i < p.n; i++) {
        float nll[5];
        pairs_read(&p, text.bytes, i, t.source, t.tokens, t.targets);
        lm_forward(&t.valid_lm, &t.engine, t.tokens, 1, 5, 5, t.targets, nll);
        for (int k = 0; k < 5; k++)
            sum += (double)nll[k];
        right += pairs_right(t.valid_lm.logits, t.targets, 5, t.valid_lm.c.V);
    }
    cr_expect_float_eq(r.accuracy, right / 500.0, 1e-12);
    cr_expect_float_eq(r.nll_sum, sum, 1e-9 * sum, "%.9g, %.9g", r.nll_sum, sum);
    corpus_close(&text);

    REFUSED(score_line(&r, &failure, EVAL "--seq 5 --mem 8 --corpus " TEXT, path), E_USAGE,
            "without a past  -> use --mem 0");
    cr_expect_eq(score_line(&r, &failure, EVAL "--seq 8 --mem 0 --corpus " TEXT, path), E_USAGE);
    cr_expect_eq(score_line(&r, &failure, EVAL "--seq 5 --mem 0 --count hf --corpus " TEXT, path),
                 E_USAGE);
    cr_expect_eq(score_line(&r, &failure, EVAL "--seq 5 --mem 0 --corpus copy:alphabet=7", path),
                 E_USAGE);
}

/* ---- what has no meaning ------------------------------------------------------------------- */

Test(train_pairs, says_what_it_needs)
{
    static const struct {
        const char *line, *text;
    } tries[] = {
        {"--variant vanilla --corpus copy:lag=3", "has no pairs"},
        {"--variant vanilla --corpus book.txt", "has no pairs"},
        {"--variant vanilla --seq 9 --corpus " TEXT, "use --seq 5"},
        {"--variant vanilla --mem 4 --corpus " TEXT, "use --mem 0"},
        {"--variant alibi --corpus " TEXT, "both directions"},
        {"--variant gla --corpus " TEXT, "both directions"},
        {"--variant bert --corpus " TEXT, "--direction both"},
        {"--variant vanilla --mask-share 0.3 --corpus " TEXT, "--objective mlm"},
    };

    for (size_t i = 0; i < ARRAY_LEN(tries); i++) {
        struct options o;
        struct err e = {""};
        cr_expect_neq(settle(&o, tries[i].line, &e), OK, "%s", tries[i].line);
        cr_expect(strstr(e.msg, tries[i].text) && strstr(e.msg, "  -> "), "%s: %s", tries[i].line,
                  e.msg);
    }
}

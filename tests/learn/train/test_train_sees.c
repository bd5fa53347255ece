/* SPDX-License-Identifier: MIT
 *
 * What the steps of a training see of a text is what its validation sees: the same memory before the
 * first token, carried alike from segment to segment, and the same tokens scored. */
#include "harness/learn/source/masked.h"
#include "tests/support/command_line.h"
#include "tests/support/open_trainer.h"
#include "tests/support/tmp_folder.h"

#include <fnmatch.h>

TestSuite(train_sees, .init = folder_make, .fini = folder_remove, .timeout = 120);

#define OURS " --layers 2 --d-model 16 --heads 2 --corpus copy:lag=3,alphabet=7 --variant "

#define UINT16 "--tokens-type uint16"

/* With weights that no step changes. */
static struct trainer *begun(const char *line)
{
    struct options *const o = room(1, sizeof(*o));
    struct trainer *const t = room(1, sizeof(*t));
    char words[3 * FILE_PATH];

    cr_assert_lt(snprintf(words, sizeof(words),
                          "train --steps 9 --backend ref --threads 1 --pin none --ckpt unused %s",
                          line),
                 (int)sizeof(words));
    cr_assert_eq(parse_words(o, words, &failure), OK, "%s: %s", line, failure.msg);
    training_settle(o);
    o->lr = 0;
    training_open(t, o);
    return t;
}

/* 4000 ids below 60, of models with as many tokens. */
static void put_ids(void)
{
    uint16_t ids[4000];

    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        ids[i] = (uint16_t)(i * i % 59);
    folder_put("ids.bin", ids, sizeof(ids));
}

/* A text of one sequence and three segments, twice: from its beginning on, memory is what it was at
 * first. Losses are those of floats in another order, 1e-6 of them each. */
Test(train_sees, what_validation_does)
{
    enum { SEGMENTS = 3 };

    put_ids();
    EACH_TEXT (word, "--mem 6" OURS "xl", "--mem 0" OURS "xl", "--mem 6" OURS "vanilla",
               "--mem 0" OURS "vanilla", "--mem all" OURS "linear", "--mem 6" OURS "linear",
               "--mem all" OURS "minlstm", "--mem 6" OURS "compressive",
               "--mem 6 --from tests/golden-import/txl_div4 --tokens %s/ids.bin " UINT16,
               "--mem 6 --from tests/golden-import/txl_original_keys --tokens %s/ids.bin " UINT16,
               "--mem 0 --from tests/golden-import/txl_div4 --tokens %s/ids.bin " UINT16,
               "--from tests/golden-import/gpt2_plain --tokens %s/ids.bin " UINT16,
               "--from tests/golden-import/mamba2 --tokens %s/ids.bin " UINT16) {
        char line[2 * FILE_PATH] = "--seq 8 --batch 1 ";
        double sum = 0;
        snprintf(line + strlen(line), sizeof(line) - strlen(line), word, folder);
        struct trainer *const t = begun(line);
        t->text.n = t->valid.n = (size_t)(SEGMENTS * t->L + 1);
        t->valid = t->text;
        t->valid_corpus.generated = false; /* nothing is known of this text */
        for (int round = 0; round < 2; round++) {
            sum = 0;
            for (int k = 0; k < SEGMENTS; k++)
                sum += trainer_step(t, 0).loss / SEGMENTS;
            const double want = trainer_validate(t).nll;
            cr_expect_float_eq(sum, want, 1e-6 * want, "%s, round %d: %.9g, %.9g", line, round, sum,
                               want);
        }
    }
}

/* Pairs are read in order, by training and by validation, and begin again behind the last; batches of
 * two or three have the same ones. */
Test(train_sees, the_pairs_that_validation_does)
{
    enum { PAIRS = 6, PERIOD = 4 + 4 + 1 };

    EACH_TEXT (variant, "vanilla", "learned", "rope")
        for (int batch = 1; batch <= 3; batch++) {
            const char *const line = kept_text(
                "--objective seq2seq --corpus reverse:n=4,alphabet=7 --batch %d --layers 1 "
                "--d-model 16 --heads 2 --variant %s",
                batch, variant);
            struct trainer *const t = begun(line);
            t->pairs.n = PAIRS;
            t->valid = t->text;
            t->valid.n = PAIRS * PERIOD + PERIOD - 1; /* the last one is not whole */
            const double want = trainer_validate(t).nll;
            for (int round = 0; round < 2; round++) {
                double sum = 0;
                for (int k = 0; k < PAIRS / batch; k++)
                    sum += trainer_step(t, 0).loss * batch / PAIRS;
                cr_expect_float_eq(sum, want, 1e-6 * want, "%s, round %d: %.9g, %.9g", line, round,
                                   sum, want);
            }
        }
}

/* The tokens that are hidden in validation are as many as --mask-share says, also of a shorter last
 * window; by hand, window by window. */
Test(train_sees, as_many_hidden_tokens_as_asked)
{
    static const double shares[] = {0.05, 0.15, 0.3, 0.5, 1};
    enum { L = 24, N = 4 * L + 8 };

    for (size_t i = 0; i < ARRAY_LEN(shares); i++) {
        double sum = 0, hidden = 0;
        struct trainer *const t = begun(kept_text(
            "--objective mlm --seq %d --batch 2 --mask-share %g" OURS "bert", (int)L, shares[i]));
        t->valid.n = N;
        const double got = trainer_validate(t).nll;
        for (int w = 0; w * L < N - 1; w++) {
            const int n = w * L + L < N - 1 ? L : N - 1 - w * L;
            const int count = masked_count(shares[i], n);
            int32_t tokens[L], at[L], was[L];
            float nll[L];
            for (int k = 0; k < n; k++)
                tokens[k] = t->valid.at[w * L + k];
            masked_hide(count, MASKED_SCORED, (uint64_t)w, t->lm.c.V - 1, tokens, n, at, was);
            t->valid_lm.picked = at;
            t->valid_lm.n_picked = count;
            lm_forward(&t->valid_lm, &t->engine, tokens, 1, n, n, was, nll);
            for (int k = 0; k < count; k++)
                sum += (double)nll[k];
            hidden += count;
        }
        cr_expect_float_eq(got, sum / hidden, 1e-12 * got, "share %g: %.9g, %.9g", shares[i], got,
                           sum / hidden);
    }
}

/* A parameter is trained if any pattern covers it, in whatever order they stand, and none else. */
Test(train_sees, every_pattern_of_train_only)
{
    static const char *const lists[][3] = {{"*", NULL},
                                           {"embed*", NULL},
                                           {"embed*", "layers.1.*", NULL},
                                           {"layers.1.*", "embed*", NULL},
                                           {"*.attn.*", "layers.0.*", "final_ln*"},
                                           {"final_ln*", "layers.0.*", "*.attn.*"}};

    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        char line[512] = "--seq 8 --mem 0 --batch 2 --train-only ";
        for (int k = 0; k < 3 && lists[i][k]; k++)
            snprintf(line + strlen(line), sizeof(line) - strlen(line), "%s%s", k ? "," : "",
                     lists[i][k]);
        strcat(line, OURS "llama");
        struct trainer *const t = begun(line);
        for (int p = 0; p < t->lm.params.n; p++) {
            bool covered = false;
            for (int k = 0; k < 3 && lists[i][k]; k++)
                covered = covered || fnmatch(lists[i][k], t->lm.params.v[p].name, 0) == 0;
            cr_expect_eq(!t->lm.params.v[p].frozen, covered, "%s: %s", line,
                         t->lm.params.v[p].name);
        }
    }
}

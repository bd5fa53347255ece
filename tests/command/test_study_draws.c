/* SPDX-License-Identifier: MIT
 *
 * Verdicts of real trainings whose truth is known: 20 draws of the baseline with other seeds are
 * not shown to differ, and the baseline with its positions off is worse. Models of a few thousand
 * parameters, on a text that repeats what stood two symbols back. */
#include "harness/measure/study_verdict.h"
#include "tests/support/command_line.h"
#include "tests/support/failure.h"
#include "tests/support/open_trainer.h"
#include "tests/support/sanitized.h"

#define LINE                                                                                       \
    "train --variant rope --backend ref --threads 1 --pin none --seq 16 --mem 0 --batch 8 "        \
    "--layers 1 --d-model 16 --heads 2 --d-inner 16 --lr 0.02 --lr-warmup 5 --ckpt unused "        \
    "--corpus copy:lag=2,p=0.9,alphabet=4 --steps 240 --seed "
enum { STEPS = 240, TESTED = 513, BASELINE = 5, SEEDS = 3, DRAWS = 20 };

/* Nats of the model that begins with this seed. */
static double trained(int seed, const char *more)
{
    struct options o;
    struct trainer t;

    MUST(parse_words(&o, kept_text(LINE "%d%s", seed, more), &failure));
    MUST(trainer_open(&t, &o, &failure));
    for (int i = 0; i < STEPS; i++)
        trainer_step(&t, (double)i / STEPS);
    t.valid.n = TESTED;
    return trainer_validate(&t).nll;
}

static void add(struct rows *rows, const char *contender, int seed, const char *more)
{
    struct study_row *const r = (struct study_row *)rows->row + rows->n++;

    *r = study_row_empty();
    text_put(r->status, TEXT_SIZE, "ok");
    text_put(r->role, TEXT_SIZE, "final");
    text_put(r->contender, TEXT_SIZE, contender);
    text_put(r->size, TEXT_SIZE, "s");
    text_put(r->corpus, LINE_SIZE, "copy");
    r->baseline = strcmp(contender, "base") == 0;
    r->seed = seed;
    r->test_nats = trained(seed, more);
}

Test(study_draws, twenty_of_twenty_not_shown_and_the_planted_one_worse, .timeout = 240)
{
    struct rows rows = {0};
    struct study_verdicts v;
    int seed = 1, alike = 0;

    SKIP_SANITIZED("its numbers are those of the other build");
    rows.row = room(BASELINE + SEEDS * (DRAWS + 1), sizeof(struct study_row));
    for (int i = 0; i < BASELINE; i++)
        add(&rows, "base", seed++, "");
    for (int d = 0; d < DRAWS; d++) {
        const char *const name = kept_text("draw%d", d);
        for (int i = 0; i < SEEDS; i++)
            add(&rows, name, seed++, "");
    }
    for (int i = 0; i < SEEDS; i++)
        add(&rows, "blind", seed++, " --layer-rope-base 0");
    v = study_verdicts_make(&rows, 0.02);
    cr_expect_eq(v.tested, DRAWS + 1);
    cr_expect_gt(v.noise, 0);
    for (int i = 0; i < v.n; i++) {
        const bool blind = strcmp(v.v[i].row->contender, "blind") == 0;
        alike += v.v[i].verdict == STUDY_NOT_SHOWN;
        cr_expect(!blind || v.v[i].verdict == STUDY_WORSE, "blind: %s by %g, p %g, noise %g",
                  study_verdict_name[v.v[i].verdict], v.v[i].quality.diff.mid, v.v[i].p, v.noise);
    }
    cr_expect_eq(alike, DRAWS, "%d of %d", alike, DRAWS);
    study_verdicts_free(&v);
}

/* SPDX-License-Identifier: MIT
 *
 * Training over hundreds of steps at small sizes: threads, continuation, dropout, and that a
 * trained model scores the same on every backend. */
#include "harness/learn/score/score.h"
#include "tests/support/command_line.h"
#include "tests/support/loaded.h"
#include "tests/support/open_trainer.h"
#include "tests/support/program.h"
#include "tests/support/sanitized.h"
#include "tests/support/tmp_folder.h"
#include "tests/support/trains.h"

TestSuite(train_long, .init = folder_make, .fini = folder_remove, .timeout = 240);

#define LINE "--seq 16 --mem 24 --corpus copy:lag=5,p=0.9,alphabet=7 --lr-warmup 10 --lr 0.005 "

static struct options parse(const char *variant, const char *backend, int threads, const char *more)
{
    return training_parse(LINE "--variant %s --backend %s --threads %d %s", variant, backend,
                          threads, more);
}

static void begin(struct trainer *t, const char *variant, const char *backend, int threads,
                  const char *more)
{
    training_begin(t, parse(variant, backend, threads, more));
}

/* 1 and 2 threads, with and without dropout: a hundred steps of those that others are compared
 * with, some of all. */
Test(train_long, threads_do_not_change_many_steps)
{
    for (int v = 0; variants[v]; v++) {
        if (!trains(variants[v]) || !sampled((size_t)v, 3))
            continue;
        const int steps = SANITIZED ? 3 : v < BASE_VARIANTS ? 100 : 20;
        double loss[2];
        for (int threads = 1; threads <= 2; threads++) {
            struct trainer t;
            begin(&t, variants[v]->name, lookup_fastest(backends, ELEM_F32)->name, threads,
                  v % 2 ? "--steps 100 --dropout 0.1" : "--steps 100");
            loss[threads - 1] = training_steps(&t, steps);
        }
        cr_expect_float_eq(loss[0], loss[1], 1e-5, "%s: %.9g and %.9g", variants[v]->name, loss[0],
                           loss[1]);
    }
}

/* 400 steps, and 200 with 200 more after a save and a load. */
Test(train_long, two_hundred_and_two_hundred)
{
    const int half = SANITIZED ? 10 : 200;
    int v = 0;

    while (!variants[v]->gate) /* the most complex case: memory, gates */
        v++;
    struct options o =
        parse(variants[v]->name, lookup_fastest(backends, ELEM_F32)->name, 1, "--steps 400");
    expect_goes_on(&o, in_folder("half.safetensors"), half, 2 * half, variants[v]->name);
}

/* Whether the last step has a line of progress, a validation or neither. */
Test(train_long, the_last_step_is_saved)
{
    static const char *const ends[] = {"--steps 50", "--steps 51", "--steps 80",
                                       "--steps 100 --stop-at 50"};
    static const int steps[] = {50, 51, 80, 50};

    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        int step = -1;
        must_bench("train --pin none --threads 1 --batch 3 --layers 2 --d-model 16 --heads 2 "
                   "--ckpt unused " LINE "--variant %s --backend %s --eval-every 40 --force %s",
                   variants[0]->name, lookup_fastest(backends, ELEM_F32)->name, ends[i]);
        const struct safetensors s = tensors_of(in_folder("unused"));
        cr_expect_eq(safetensors_int(&s, "step", -1, 0, 1000, &step, &failure), OK, "%s",
                     failure.msg);
        cr_expect_eq(step, steps[i], "%s: saved at step %d", ends[i], step);
    }
}

/* Dropout changes a step; validation never drops. */
Test(train_long, only_training_drops)
{
    struct trainer plain, drops;

    begin(&plain, "xl", "ref", 1, "");
    begin(&drops, "xl", "ref", 1, "--dropout 0.3");
    plain.valid.n = drops.valid.n = 200;
    cr_expect_eq(trainer_validate(&plain).nll, trainer_validate(&drops).nll);
    cr_expect(fabs(training_steps(&plain, 1) - training_steps(&drops, 1)) > 1e-3);
}

Test(train_long, dropout_of_everything_is_refused)
{
    /* The second is below 1 until it is rounded to float. */

    EACH_TEXT (word, "1", "0.99999999")
        bench_exits(2, "  -> use less than 1", "train --variant xl --ckpt x --dropout %s", word);
}

/* ---- a trained model ---------------------------------------------------------------------- */

static double score_on(const char *backend, struct trainer *t, struct options *o)
{
    struct scorer s = {.opt = o, .topo = t->topo};

    o->backends.v[0] = backend;
    o->batch.n = 0; /* that of the training */
    cr_assert_eq(score_run(&s, SPLIT_VALID, &failure), OK, "%s: %s", backend, failure.msg);
    return s.report.nll;
}

/* Weights far from their initial values, tokens that depend on each other: 1e-4 nats. */
Test(train_long, every_backend_scores_a_trained_model_alike)
{
    for (int v = 0; variants[v]; v++) {
        if (!trains(variants[v]) || !sampled((size_t)v + 1, 3))
            continue;
        struct trainer t;

        const char *const path = in_folder("trained.safetensors");
        begin(&t, variants[v]->name, lookup_fastest(backends, ELEM_F32)->name, 1, "--steps 60");
        t.valid.n = 1500;
        const double before = trainer_validate(&t).nll;
        training_steps(&t, SANITIZED ? 4 : 60);
        if (!SANITIZED)
            cr_expect_lt(trainer_validate(&t).nll, before - 0.1, "%s learned nothing",
                         variants[v]->name);
        MUST(trainer_save_weights(&t, path, &failure));
        struct options o = *t.opt;
        o.ckpt = path;
        o.bytes = SANITIZED ? 150 : 1500;
        const double want = score_on("ref", &t, &o);
        for (int b = 0; backends[b]; b++)
            if (backends[b]->adds == ELEM_F32 && backend_usable(backends[b], NULL) == OK) {
                const double got = score_on(backends[b]->name, &t, &o);
                cr_expect_float_eq(got, want, 1e-4, "%s on %s: %.7f, reference %.7f",
                                   variants[v]->name, backends[b]->name, got, want);
            }
    }
}

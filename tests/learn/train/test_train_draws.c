/* SPDX-License-Identifier: MIT
 *
 * What chance decides in a training, objective by objective, and which seed decides it: --seed the
 * weights, the masks, the hidden tokens and the actions, seed=N of a source or task its text. Each draw
 * is watched with all others held. */
#include "tests/support/open_trainer.h"

#include <criterion/criterion.h>
#include <xxhash.h>

TestSuite(train_draws, .timeout = 120);

enum draw { WEIGHTS, TEXT, MASKS, HIDDEN, ACTIONS, DRAWS };
static const char *const draw_name[] = {"weights", "text", "masks", "hidden tokens", "actions"};
enum { STEPS = 4 };

struct kind {
    const char *name, *line, *source; /* what has a seed=N */
    bool has[DRAWS];
};
static const struct kind kinds[] = {
    {"lm", "--variant xl --seq 16 --mem 16 --corpus", "copy:lag=3,alphabet=9", {true, true, true}},
    {"windows",
     "--variant rope --seq 16 --mem 16 --corpus",
     "copy:lag=3,alphabet=9",
     {true, true, true}},
    {"mlm",
     "--variant bert --objective mlm --seq 16 --mask-share 0.4 --corpus",
     "copy:lag=3,alphabet=9",
     {true, true, true, true}},
    {"seq2seq",
     "--variant vanilla --objective seq2seq --corpus",
     "reverse:n=12,alphabet=9",
     {true, true, true}},
    {"play",
     "--variant xl --seq 6 --mem 6 --task",
     "numpad:n=2,len=24",
     {true, true, false, false, true}},
};

static void begin(struct trainer *t, const struct kind *k, int seed, int source, const char *more)
{
    struct options o =
        training_parse("%s %s,seed=%d --seed %d --layers 1 --lr-warmup 0 --steps 8%s", k->line,
                       k->source, source, seed, more);

    training_settle(&o);
    training_begin(t, o);
}

static uint64_t hash_weights(const struct trainer *t)
{
    uint64_t h = 0;

    for (int i = 0; i < t->lm.params.n; i++)
        h = XXH3_64bits_withSeed(t->lm.params.v[i].data, t->lm.params.v[i].n * sizeof(float), h);
    return h;
}

/* Which episodes are played: all that happens in them follows from these numbers and the actions. */
static uint64_t hash_episodes(const struct player *p)
{
    uint64_t h = 0;

    for (int b = 0; b < p->B; b++)
        h = XXH3_64bits_withSeed(&p->episodes[b], offsetof(struct episode, t), h);
    return h;
}

/* Of the same weights in all steps, whatever the seed: what is left is drawn. */
static void set_weights(struct trainer *t)
{
    for (int i = 0; i < t->lm.params.n; i++)
        for (size_t k = 0; k < t->lm.params.v[i].n; k++)
            t->lm.params.v[i].data[k] = 0.3f * (float)sin(1.0 + 3.7 * i + 0.9 * (double)k);
    lm_build_tables(&t->lm, &t->engine);
}

/* A hash for each step of what this draw decides. */
static void watch(uint64_t to[STEPS], const struct kind *k, enum draw draw, int seed, int source)
{
    struct trainer t;
    /* Where masks are watched, all tokens are hidden, so that the same ones are. */
    const char *const more = draw != MASKS     ? ""
                             : !k->has[HIDDEN] ? " --dropout 0.3"
                                               : " --dropout 0.3 --mask-share 1";

    begin(&t, k, seed, source, more);
    const uint64_t weights = hash_weights(&t);
    for (int i = 0; i < STEPS; i++) {
        set_weights(&t);
        const double loss = trainer_step(&t, 0).loss;
        const size_t all = (size_t)(t.B * t.L);
        switch (draw) {
        case WEIGHTS:
            to[i] = weights;
            break;
        case TEXT:
            to[i] = t.play ? hash_episodes(&t.play->player) : XXH3_64bits(t.text.at, t.text.n);
            break;
        case MASKS:
            to[i] = XXH3_64bits(&loss, sizeof(loss));
            break;
        case HIDDEN:
            to[i] = XXH3_64bits(t.places, (size_t)t.B * (size_t)t.hidden * sizeof(*t.places));
            break;
        case ACTIONS:
            to[i] = XXH3_64bits(t.play->player.actions, all * sizeof(int32_t));
            break;
        case DRAWS:
            break;
        }
    }
}

/* Which of the two seeds decides it. */
static bool by_option(enum draw d) { return d != TEXT; }

Test(train_draws, each_follows_its_seed_and_no_other)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        for (enum draw d = WEIGHTS; d < DRAWS; d++) {
            uint64_t one[STEPS], again[STEPS], option[STEPS], source[STEPS];
            if (!kinds[i].has[d])
                continue;
            watch(one, &kinds[i], d, 1, 1);
            watch(again, &kinds[i], d, 1, 1);
            watch(option, &kinds[i], d, 2, 1);
            watch(source, &kinds[i], d, 1, 2);
            for (int s = 0; s < STEPS; s++) {
                cr_expect_eq(one[s], again[s], "%s, %s of step %d: the same seeds", kinds[i].name,
                             draw_name[d], s);
                cr_expect_eq(one[s] != option[s], by_option(d), "%s, %s of step %d: another --seed",
                             kinds[i].name, draw_name[d], s);
                if (d == WEIGHTS || d == HIDDEN || d == TEXT)
                    cr_expect_eq(one[s] != source[s], !by_option(d),
                                 "%s, %s of step %d: another seed=", kinds[i].name, draw_name[d],
                                 s);
                for (int k = 0; k < s && d >= MASKS; k++)
                    cr_expect_neq(one[s], one[k], "%s, %s of steps %d and %d", kinds[i].name,
                                  draw_name[d], k, s);
            }
        }
}

/* Without dropout the loss of the first step is one of weights, text and hidden tokens alone. */
Test(train_draws, nothing_else_is_drawn)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        double loss[2];
        if (kinds[i].has[ACTIONS])
            continue;
        for (int seed = 1; seed <= 2; seed++) {
            struct trainer t;
            begin(&t, &kinds[i], seed, 1, kinds[i].has[HIDDEN] ? " --mask-share 1" : "");
            set_weights(&t);
            loss[seed - 1] = trainer_step(&t, 0).loss;
        }
        cr_expect_eq(loss[0], loss[1], "%s", kinds[i].name);
    }
}

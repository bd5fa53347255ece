/* SPDX-License-Identifier: MIT
 *
 * Opens trainers, runs them, and compares what two have learnt. */
#include "open_trainer.h"

#include "command_line.h"
#include "failure.h"

enum { LINE = 4 * FILE_PATH };

enum status trainer_open(struct trainer *t, const struct options *opt, struct err *e)
{
    const enum status st = trainer_open_ranked(t, opt, &(struct ranks){.count = 1, .nodes = 1}, e);

    kept_copy(t, sizeof(*t));
    kept_copy(opt, sizeof(*opt)); /* as they are settled now */
    return st;
}

struct options training_parse(const char *fmt, ...)
{
    char line[LINE] = "train ", name[16];
    const size_t n = strlen(line);
    struct options o;
    va_list words;

    va_start(words, fmt);
    cr_assert_lt(vsnprintf(line + n, sizeof(line) - n, fmt, words), (int)(sizeof(line) - n));
    va_end(words);
    EACH_TEXT (usual, "--pin none", "--backend ref", "--threads 1", "--batch 3", "--layers 2",
               "--d-model 16", "--heads 2", "--ckpt unused") {
        snprintf(name, sizeof(name), "%.*s ", (int)strcspn(usual, " "), usual);
        if (!strstr(line, name)) /* values of lists add up */
            text_append(line, sizeof(line), " %s", usual);
    }
    cr_assert_eq(parse_words(&o, line, &failure), OK, "%s: %s", line, failure.msg);
    return o;
}

void training_settle(struct options *o) { MUST(train_settle(o, 1, &failure)); }

void training_open(struct trainer *t, const struct options *o)
{
    cr_assert_eq(trainer_open(t, o, &failure), OK, "%s: %s", o->variants.v[0], failure.msg);
}

void training_begin(struct trainer *t, struct options o)
{
    struct options *const own = room(1, sizeof(o));

    *own = o;
    training_open(t, own);
}

double training_steps(struct trainer *t, int steps)
{
    double loss = 0;

    for (int i = 0; i < steps; i++)
        loss = trainer_step(t, (double)t->optimizer.step / t->opt->steps).loss;
    return loss;
}

double training_mean(struct trainer *t, int steps)
{
    double sum = 0;

    for (int i = 0; i < steps; i++)
        sum += trainer_step(t, 0).loss / steps;
    return sum;
}

void training_save(struct trainer *t, const char *path)
{
    MUST(trainer_save(t, path, 1.5, &failure));
}

void training_load(struct trainer *t, const char *path) { MUST(trainer_load(t, path, &failure)); }

void expect_same_weights(const struct trainer *a, const struct trainer *b, const char *what)
{
    for (int i = 0; i < a->lm.params.n; i++)
        cr_expect_arr_eq(a->lm.params.v[i].data, b->lm.params.v[i].data,
                         a->lm.params.v[i].n * sizeof(float), "%s: %s", what,
                         a->lm.params.v[i].name);
}

void expect_goes_on(const struct options *o, const char *path, int half, int steps,
                    const char *what)
{
    struct trainer whole, first, second;

    training_open(&whole, o), training_open(&first, o), training_open(&second, o);
    training_steps(&whole, steps);
    training_steps(&first, half);
    first.best_valid = 1.25;
    training_save(&first, path);
    training_load(&second, path);
    cr_expect(second.optimizer.step == half && second.trained_s == 1.5 && second.best_valid == 1.25,
              "%s", what);
    training_steps(&second, steps - half);
    expect_same_weights(&whole, &second, what);
}

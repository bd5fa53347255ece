/* SPDX-License-Identifier: MIT
 *
 * Playing a task, segment by segment. */
#include "train_play.h"

#include "variants/base/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening -------------------------------------------------------------------------------- */

enum status play_open(struct trainer *t, struct err *e)
{
    const struct options *const o = t->opt;

    if (!task_named(o->task))
        return fail(e, E_USAGE, "--task \"%.120s\" is no task  -> see: bench list tasks", o->task);
    if (t->ranks.count > 1)
        return fail(e, E_UNSUPPORTED, "--task is not divided among ranks  -> use one rank");
    t->play = calloc(1, sizeof(*t->play));
    t->corpus.name = strdup(o->task);
    NEED(t->play && t->corpus.name);
    const enum status st = task_parse(&t->play->task, o->task, e);
    if (st != OK)
        return st;
    t->corpus.unit = "step";
    /* The output has logits of the actions and the value behind them. */
    t->corpus.vocab = max_int(task_symbols(&t->play->task), task_actions(&t->play->task) + 1);
    return OK;
}

enum status play_check(const struct trainer *t, struct err *e)
{
    if (!lm_has_logits(&t->lm) || t->lm.drive->heads)
        return fail(e, E_UNSUPPORTED,
                    "%s: --task needs one output of plain logits  -> choose a variant without "
                    "clusters of words or exits",
                    t->lm.c.variant->name);
    return OK;
}

void play_bind(struct trainer *t, struct arena *a)
{
    struct play *const p = t->play;
    const size_t B = (size_t)t->B, rows = B * (size_t)t->L, V = (size_t)t->lm.c.V;
    const size_t all = B * (size_t)task_length(&p->task);

    p->episodes = arena_take(a, PART_ACTIVATIONS, B * sizeof(*p->episodes));
    p->seen = arena_take(a, PART_ACTIVATIONS, all * sizeof(int32_t));
    p->done = arena_take(a, PART_ACTIVATIONS, all * sizeof(int32_t));
    p->actions = arena_take(a, PART_ACTIVATIONS, rows * sizeof(int32_t));
    p->returns = arena_take(a, PART_ACTIVATIONS, B * sizeof(double));
    p->rewards = arena_f32(a, PART_ACTIVATIONS, rows);
    p->after = arena_f32(a, PART_ACTIVATIONS, B);
    p->advantages = arena_f32(a, PART_ACTIVATIONS, rows);
    p->targets = arena_f32(a, PART_ACTIVATIONS, rows);
    p->out = arena_f32(a, PART_ACTIVATIONS, rows * V);
    p->d_out = arena_f32(a, PART_ACTIVATIONS, B * (size_t)(t->past + t->L) * V);
}

/* ---- episodes ------------------------------------------------------------------------------- */

static int segments(const struct trainer *t)
{
    return (task_length(&t->play->task) + t->L - 1) / t->L;
}

int play_at(const struct trainer *t) { return t->optimizer.step % segments(t) * t->L; }

static void begin(struct trainer *t, enum split split, uint64_t batch)
{
    struct play *const p = t->play;

    for (int b = 0; b < t->B; b++) {
        task_begin(&p->task, &p->episodes[b], (uint64_t)split + SPLIT_COUNT * p->task.seed,
                   batch * (uint64_t)t->B + (uint64_t)b);
        p->returns[b] = 0;
    }
}

static void look(struct trainer *t, int at)
{
    const struct play *const p = t->play;

    for (int b = 0; b < t->B; b++)
        p->seen[b * task_length(&p->task) + at] = task_observe(&p->task, &p->episodes[b]);
}

/* The outputs of the last `scored` of the observations [from,to). */
static void think(struct trainer *t, struct lm *m, int from, int to, int scored)
{
    const struct play *const p = t->play;
    const int n = to - from;

    for (int b = 0; b < t->B; b++)
        memcpy(t->tokens + b * n, p->seen + b * task_length(&p->task) + from,
               sizeof(*t->tokens) * (size_t)n);
    lm_forward(m, &t->engine, t->tokens, t->B, n, scored, NULL, NULL);
}

/* Steps [at,at+n) of all episodes, which see `past` observations before them again. Actions are
 * drawn by number: that of the step among all of this stream. */
static void play(struct trainer *t, struct lm *m, int at, int n, int past, const char *stream,
                 uint64_t batch)
{
    struct play *const p = t->play;
    const int A = task_actions(&p->task), length = task_length(&p->task);
    const uint64_t draws = rng_stream(stream);

    for (int i = 0; i < n; i++) {
        look(t, at + i);
        think(t, m, at - past, at + i + 1, 1);
        for (int b = 0; b < t->B; b++) {
            const uint64_t step = batch * (uint64_t)length + (uint64_t)(at + i);
            const double u = rng_uniform(t->opt->seed, draws, step * (uint64_t)t->B + (uint64_t)b);
            const int a = actor_critic_draw(m->logits + (ptrdiff_t)b * m->c.V, A, u);
            const double reward = task_step(&p->task, &p->episodes[b], a);
            p->done[b * length + at + i] = p->actions[b * n + i] = a;
            p->rewards[b * n + i] = (float)reward;
            p->returns[b] += reward;
        }
    }
}

static double mean_return(const struct trainer *t)
{
    double sum = 0;

    for (int b = 0; b < t->B; b++)
        sum += t->play->returns[b];
    return sum / t->B;
}

/* ---- learning ------------------------------------------------------------------------------- */

/* v of what follows the segment: 0 at the end. */
static void look_ahead(struct trainer *t, int from, int to)
{
    struct play *const p = t->play;
    const int A = task_actions(&p->task);
    const bool end = to == task_length(&p->task);

    if (!end) {
        look(t, to);
        think(t, &t->lm, from, to + 1, 1);
    }
    for (int b = 0; b < t->B; b++)
        p->after[b] = end ? 0 : t->lm.logits[(ptrdiff_t)b * t->lm.c.V + A];
}

void play_gradient(struct trainer *t, struct step_report *r)
{
    struct play *const p = t->play;
    const struct options *const o = t->opt;
    const int length = task_length(&p->task), V = t->lm.c.V, at = play_at(t);
    const int n = min_int(t->L, length - at), past = min_int(at, t->past), window = past + n;
    const uint64_t batch = (uint64_t)(t->optimizer.step / segments(t));

    if (at == 0) {
        lm_forget(&t->lm);
        begin(t, SPLIT_TRAIN, batch);
    }
    play(t, &t->lm, at, n, past, "task.action", batch);
    look_ahead(t, at - past, at + n);
    think(t, &t->lm, at - past, at + n, window);
    for (int b = 0; b < t->B; b++)
        memcpy(p->out + (ptrdiff_t)b * n * V, t->lm.logits + ((ptrdiff_t)b * window + past) * V,
               sizeof(float) * (size_t)n * (size_t)V);
    const struct actor_critic x = {.B = t->B,
                                   .L = n,
                                   .A = task_actions(&p->task),
                                   .V = V,
                                   .discount = o->discount,
                                   .lambda = o->trace,
                                   .value_coef = o->value_coef,
                                   .entropy_coef = o->entropy_coef,
                                   .out = p->out,
                                   .actions = p->actions,
                                   .rewards = p->rewards,
                                   .after = p->after,
                                   .advantages = p->advantages,
                                   .targets = p->targets};
    actor_critic_advantages(&x);
    const struct actor_critic_loss loss = actor_critic_grad(&x, p->d_out);
    /* Rows of the past have none: from the last sequence on, which has the farthest to move. */
    for (int b = t->B - 1; past > 0 && b >= 0; b--) {
        float *const to = p->d_out + (ptrdiff_t)b * window * V;
        memmove(to + (ptrdiff_t)past * V, p->d_out + (ptrdiff_t)b * n * V,
                sizeof(float) * (size_t)n * (size_t)V);
        memset(to, 0, sizeof(float) * (size_t)past * (size_t)V);
    }
    t->lm.d_logits = p->d_out;
    lm_backward(&t->lm, &t->engine, t->tokens, NULL, t->B, window);
    lm_commit(&t->lm, n);
    r->loss = loss.loss;
    r->entropy = loss.entropy;
    r->returned = at + n == length ? mean_return(t) : NAN;
}

/* ---- validation ----------------------------------------------------------------------------- */

/* The episodes of the training are put away and come back. */
struct validation play_validate(struct trainer *t)
{
    struct play *const p = t->play;
    const int length = task_length(&p->task), B = t->B;
    const int batches = (PLAY_VALID + B - 1) / B;
    const struct play kept = *p;
    struct play other = kept;
    double sum = 0, squares = 0;

    other.episodes = calloc((size_t)B, sizeof(*other.episodes));
    other.seen = calloc((size_t)B * (size_t)length, sizeof(*other.seen));
    other.done = calloc((size_t)B * (size_t)length, sizeof(*other.done));
    other.returns = calloc((size_t)B, sizeof(*other.returns));
    NEED(other.episodes && other.seen && other.done && other.returns);
    *p = other;
    lm_build_tables(&t->valid_lm, &t->engine);
    for (int k = 0; k < batches; k++) {
        lm_forget(&t->valid_lm);
        begin(t, SPLIT_VALID, (uint64_t)k);
        for (int at = 0; at < length; at += t->L) {
            const int n = min_int(t->L, length - at);
            play(t, &t->valid_lm, at, n, min_int(at, t->past), "task.valid", (uint64_t)k);
            lm_commit(&t->valid_lm, n);
        }
        for (int b = 0; b < B; b++) {
            sum += p->returns[b];
            squares += p->returns[b] * p->returns[b];
        }
    }
    *p = kept;
    free(other.episodes);
    free(other.seen);
    free(other.done);
    free(other.returns);
    const double n = (double)batches * B, mean = sum / n;
    return (struct validation){.nll = length - mean,
                               .floor = NAN,
                               .returned = mean,
                               .returned_error = sqrt(fmax(0, squares / n - mean * mean) / n),
                               .answers = answers_mean((struct answers){0})};
}

/* ---- files ---------------------------------------------------------------------------------- */

void play_actions(const struct trainer *t, float *to)
{
    const int at = play_at(t), length = task_length(&t->play->task);

    for (int b = 0; b < t->B; b++)
        for (int i = 0; i < at; i++)
            to[b * at + i] = (float)t->play->done[b * length + i];
}

enum status play_again(struct trainer *t, const float *actions, const char *path, struct err *e)
{
    struct play *const p = t->play;
    const int at = play_at(t), length = task_length(&p->task), A = task_actions(&p->task);

    begin(t, SPLIT_TRAIN, (uint64_t)(t->optimizer.step / segments(t)));
    for (int i = 0; i < at; i++) {
        look(t, i);
        for (int b = 0; b < t->B; b++) {
            const float x = actions[b * at + i];
            if (!(x >= 0 && x < (float)A && x == floorf(x)))
                return fail(e, E_IO, "%s: action %g is none of %d  -> train again with --force",
                            path, (double)x, A);
            p->done[b * length + i] = (int)x;
            p->returns[b] += task_step(&p->task, &p->episodes[b], (int)x);
        }
    }
    return OK;
}

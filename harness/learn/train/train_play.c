/* SPDX-License-Identifier: MIT
 *
 * Playing a task, segment by segment. */
#include "train_play.h"

#include "variants/model/lm/admin.h"

/* ---- opening -------------------------------------------------------------------------------- */

/* t->corpus describes the task as a text that has no symbols yet. */
static enum status play_open(struct trainer *t, struct err *e)
{
    const struct options *const o = t->opt;

    if (!task_named(o->task))
        return fail(e, E_USAGE, "--task \"%.120s\" is not a task  -> see: bench list tasks",
                    o->task);
    if (t->ranks.count > 1)
        return fail(e, E_UNSUPPORTED, "--task is not divided among ranks  -> use one rank");
    t->play = need_room(1, sizeof(*t->play));
    t->corpus.name = need_text("%s", o->task);
    TRY(task_parse(&t->play->player.task, o->task, e));
    t->corpus.unit = "step";
    t->corpus.vocab = player_symbols(&t->play->player.task);
    t->play->player.B = t->B;
    t->play->player.seed = t->opt->seed;
    t->play->player.engine = &t->engine;
    return OK;
}

static void play_bind(struct trainer *t, struct arena *a)
{
    struct play *const p = t->play;
    const size_t B = (size_t)t->B, rows = B * (size_t)t->L, V = (size_t)t->lm.c.V;

    p->player.tokens = t->tokens;
    player_bind(&p->player, t->L, a);
    p->after = arena_f32(a, PART_ACTIVATIONS, B);
    p->advantages = arena_f32(a, PART_ACTIVATIONS, rows);
    p->targets = arena_f32(a, PART_ACTIVATIONS, rows);
    p->out = arena_f32(a, PART_ACTIVATIONS, rows * V);
    p->d_out = arena_f32(a, PART_ACTIVATIONS, B * (size_t)(t->past + t->L) * V);
}

/* ---- episodes ------------------------------------------------------------------------------- */

static int segments(const struct trainer *t)
{
    return (task_length(&t->play->player.task) + t->L - 1) / t->L;
}

int play_at(const struct trainer *t) { return t->optimizer.step % segments(t) * t->L; }

int64_t play_frames(const struct trainer *t, int step)
{
    const int length = task_length(&t->play->player.task), n = segments(t);

    return (int64_t)t->B * ((int64_t)(step / n) * length + step % n * t->L);
}

static double mean_return(const struct trainer *t)
{
    double sum = 0;

    for (int b = 0; b < t->B; b++)
        sum += t->play->player.returns[b];
    return sum / t->B;
}

/* ---- learning ------------------------------------------------------------------------------- */

/* v of what follows the segment: 0 at the end. */
static void look_ahead(struct trainer *t, int from, int to)
{
    struct play *const p = t->play;
    const int A = task_actions(&p->player.task);
    const bool end = to == task_length(&p->player.task);

    if (!end) {
        player_look(&p->player, to);
        player_think(&p->player, &t->lm, from, to + 1, 1);
    }
    for (int b = 0; b < t->B; b++)
        p->after[b] = end ? 0 : t->lm.logits[(ptrdiff_t)b * t->lm.c.V + A];
}

/* The first n steps of these episodes, which begin again after it. */
static void profile(struct trainer *t, int n, uint64_t batch)
{
    struct player *const p = &t->play->player;

    player_steps(p, &t->lm, 0, n, 0, "task.action", batch);
    admin_profile(&t->lm, &t->engine, p->tokens, t->B, n);
    lm_forget(&t->lm);
    player_begin(p, SPLIT_TRAIN, batch);
}

static void play_gradient(struct trainer *t, struct step_report *r)
{
    struct play *const p = t->play;
    const struct options *const o = t->opt;
    const int length = task_length(&p->player.task), V = t->lm.c.V, at = play_at(t);
    const int n = min_int(t->L, length - at), past = min_int(at, t->past), window = past + n;
    const uint64_t batch = (uint64_t)(t->optimizer.step / segments(t));

    if (at == 0) {
        lm_forget(&t->lm);
        player_begin(&p->player, SPLIT_TRAIN, batch);
    }
    if (t->optimizer.step == 0 && admin_profiles(&t->lm))
        profile(t, n, batch);
    player_steps(&p->player, &t->lm, at, n, past, "task.action", batch);
    look_ahead(t, at - past, at + n);
    player_think(&p->player, &t->lm, at - past, at + n, window);
    for (int b = 0; b < t->B; b++)
        memcpy(p->out + (ptrdiff_t)b * n * V, t->lm.logits + ((ptrdiff_t)b * window + past) * V,
               sizeof(float) * (size_t)n * (size_t)V);
    const struct actor_critic x = {.B = t->B,
                                   .L = n,
                                   .A = task_actions(&p->player.task),
                                   .V = V,
                                   .discount = o->discount,
                                   .lambda = o->trace,
                                   .value_coef = o->value_coef,
                                   .entropy_coef = o->entropy_coef,
                                   .out = p->out,
                                   .actions = p->player.actions,
                                   .rewards = p->player.rewards,
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
    trainer_commit(t, &t->lm, n);
    r->loss = loss.loss;
    r->entropy = loss.entropy;
    r->returned = at + n == length ? mean_return(t) : NAN;
}

/* ---- validation ----------------------------------------------------------------------------- */

/* nll is what the mean return lacks of a reward of 1 in each step. The episodes of the training are
 * put away and come back. */
static struct validation play_validate(struct trainer *t)
{
    struct play *const p = t->play;
    const int length = task_length(&p->player.task), B = t->B;
    const int batches = (PLAY_VALID + B - 1) / B;
    const struct player kept = p->player;
    struct player other = kept;
    double sum = 0, squares = 0;

    other.episodes = need_room((size_t)B, sizeof(*other.episodes));
    other.seen = need_room((size_t)B * (size_t)length, sizeof(*other.seen));
    other.done = need_room((size_t)B * (size_t)length, sizeof(*other.done));
    other.returns = need_room((size_t)B, sizeof(*other.returns));
    p->player = other;
    lm_build_tables(&t->valid_lm, &t->engine);
    for (int k = 0; k < batches; k++) {
        lm_forget(&t->valid_lm);
        player_begin(&p->player, SPLIT_VALID, (uint64_t)k);
        for (int at = 0; at < length; at += t->L) {
            const int n = min_int(t->L, length - at);
            player_steps(&p->player, &t->valid_lm, at, n, min_int(at, t->past), "task.valid",
                         (uint64_t)k);
            trainer_commit(t, &t->valid_lm, n);
        }
        for (int b = 0; b < B; b++) {
            sum += p->player.returns[b];
            squares += p->player.returns[b] * p->player.returns[b];
        }
    }
    p->player = kept;
    free(other.episodes);
    free(other.seen);
    free(other.done);
    free(other.returns);
    const double n = (double)batches * B, mean = sum / n;
    return (struct validation){.nll = length - mean,
                               .floor = NAN,
                               .returned = mean,
                               .returned_error = sqrt(fmax(0, squares / n - mean * mean) / n),
                               .accuracy = NAN,
                               .answers = answers_mean((struct answers){0})};
}

/* ---- files ---------------------------------------------------------------------------------- */

void play_actions(const struct trainer *t, float *to)
{
    const int at = play_at(t), length = task_length(&t->play->player.task);

    for (int b = 0; b < t->B; b++)
        for (int i = 0; i < at; i++)
            to[b * at + i] = (float)t->play->player.done[b * length + i];
}

enum status play_again(struct trainer *t, const float *actions, const char *path, struct err *e)
{
    struct play *const p = t->play;
    const int at = play_at(t), length = task_length(&p->player.task),
              A = task_actions(&p->player.task);

    player_begin(&p->player, SPLIT_TRAIN, (uint64_t)(t->optimizer.step / segments(t)));
    for (int i = 0; i < at; i++) {
        player_look(&p->player, i);
        for (int b = 0; b < t->B; b++) {
            const float x = actions[b * at + i];
            if (!(x >= 0 && x < (float)A && x == floorf(x)))
                return fail(e, E_IO, "%s: action %g is none of %d  -> train again with --force",
                            path, (double)x, A);
            p->player.done[b * length + i] = (int)x;
            p->player.returns[b] += task_step(&p->player.task, &p->player.episodes[b], (int)x);
        }
    }
    return OK;
}

static size_t position(const struct trainer *t) { return (size_t)play_at(t); }

const struct train_kind train_play = {.open = play_open,
                                      .bind = play_bind,
                                      .gradient = play_gradient,
                                      .position = position,
                                      .validate = play_validate};

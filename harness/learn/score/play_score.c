/* SPDX-License-Identifier: MIT
 *
 * Plays episodes with the weights of a checkpoint. */
#include "play_score.h"
#include "harness/learn/task/player.h"
#include "harness/table/record.h"
#include "harness/util/signals.h"
#include "subject.h"

#include "variants/model/import/weights.h"

enum { AT_ONCE = 50 }; /* episodes; always as many, because draws of actions are numbered by it */

void play_task_of(const char *ckpt, char task[KEYED_TEXT])
{
    struct weights w;

    *task = '\0';
    if (!ckpt || weights_open(&w, ckpt, NULL) != OK)
        return;
    const char *const text = w.is_published ? NULL : weights_meta(&w, "corpus");
    if (text && task_named(text))
        snprintf(task, KEYED_TEXT, "%s", text);
    weights_close(&w);
}

bool play_solved(double mean, double random, double optimum)
{
    return mean - random >= 0.9 * (optimum - random);
}

struct scorer {
    const struct options *o;
    struct engine engine;
    struct lm lm;
    struct arena arena;
    struct player player;
    enum mem_kind kind;
    int L, past; /* steps of a segment; observations before it that are shown again */
};

/* As it was trained: a window without a memory moves along with each step; segments that leave a
 * memory are those of the training, whose value looked one step further. */
static void configure(struct scorer *t, const struct config *c)
{
    const int window = max_int(1, c->max_seq - 1), length = task_length(&t->player.task);

    t->kind = c->mem_len ? mem_usual(config_mem(c), true) : MEM_RECOMPUTE;
    t->L = t->kind == MEM_RECOMPUTE ? 1 : min_int(window, length);
    t->past = t->kind == MEM_RECOMPUTE ? window - 1 : 0;
}

static enum status bind_all(void *arg, struct err *e)
{
    struct scorer *const t = arg;
    struct player *const p = &t->player;
    const size_t read = (size_t)p->B * (size_t)(t->past + t->L);
    const struct extent max = {p->B, t->past + t->L, t->lm.c.mem_len};

    engine_bind(&t->engine, &t->arena);
    TRY(lm_bind(&t->lm, &t->engine, t->kind, max, &t->arena, e));
    player_bind(p, t->L, &t->arena);
    p->tokens = arena_take(&t->arena, PART_ACTIVATIONS, read * sizeof(*p->tokens));
    return OK;
}

static enum status open_model(struct scorer *t, const struct weights *w, struct err *e)
{
    configure(t, &w->config);
    TRY(lm_init(&t->lm, &w->config, e));
    TRY(player_check(&t->lm, e));
    if (t->lm.c.V < player_symbols(&t->player.task))
        return fail(e, E_IO, "checkpoint %s has %d symbols, its task %d  -> train it again",
                    t->o->ckpt, t->lm.c.V, player_symbols(&t->player.task));
    TRY(lm_place(&t->arena, (enum huge_pages)t->o->huge_pages, bind_all, NULL, t, e));
    return lm_load(&t->lm, w, &t->engine, e);
}

/* The segment at step `at` of a batch; `rewards`, if not NULL, get those of the first episode. */
static void play_segment(struct scorer *t, int at, uint64_t batch, float *rewards)
{
    struct player *const p = &t->player;
    const int n = min_int(t->L, task_length(&p->task) - at);

    player_steps(p, &t->lm, at, n, min_int(at, t->past), "task.test", batch);
    lm_commit(&t->lm, n);
    if (rewards)
        memcpy(rewards, p->rewards, (size_t)n * sizeof(*rewards));
}

static void play_batch(struct scorer *t, int batch)
{
    struct player *const p = &t->player;
    const int length = task_length(&p->task);

    lm_forget(&t->lm);
    player_begin(p, SPLIT_TEST, (uint64_t)batch);
    for (int at = 0; at < length; at += t->L)
        play_segment(t, at, (uint64_t)batch, NULL);
}

/* Of the last batch, episodes beyond the number that was asked for do not count. */
static enum status play_all(struct scorer *t, struct play_score *out, struct err *e)
{
    const volatile int *const stop = signals_watch();
    const double z = 1.959964; /* of 95 % of a normal distribution */
    const int n = t->o->episodes;
    double sum = 0, squares = 0;

    for (int first = 0; first < n; first += t->player.B) {
        if (*stop)
            return fail(e, E_INTERRUPTED, "interrupted after %d of %d episodes", first, n);
        play_batch(t, first / t->player.B);
        for (int b = 0; b < min_int(t->player.B, n - first); b++) {
            sum += t->player.returns[b];
            squares += t->player.returns[b] * t->player.returns[b];
        }
    }
    out->episodes = n;
    out->mean = sum / n;
    const double error = n > 1 ? sqrt(fmax(0, squares - sum * out->mean) / (n - 1.0) / n) : NAN;
    out->low = out->mean - z * error;
    out->high = out->mean + z * error;
    return OK;
}

/* The model of --ckpt with B episodes at once, and what the checkpoint says of itself. */
static enum status open_scorer(struct scorer *t, struct weights *w, struct subject *s, int B,
                               struct err *e)
{
    char task[KEYED_TEXT];

    play_task_of(t->o->ckpt, task);
    TRY(task_parse(&t->player.task, task, e));
    TRY(subject_engine(s, &t->engine, e));
    TRY(weights_open(w, t->o->ckpt, e));
    t->player.B = B;
    t->player.seed = t->player.task.seed;
    t->player.engine = &t->engine;
    return open_model(t, w, e);
}

static void close_scorer(struct scorer *t, struct weights *w)
{
    weights_close(w);
    lm_free(&t->lm);
    arena_release(&t->arena);
}

enum status play_score(struct play_score *out, const struct options *o, struct err *e)
{
    struct scorer *const t = need_room(1, sizeof(*t));
    struct subject subject = {.opt = o, .ckpt = o->ckpt};
    struct weights w = {0};
    int step = -1;

    t->o = o;
    *out = (struct play_score){.step = I64_EMPTY};
    play_task_of(o->ckpt, out->task);
    enum status st = open_scorer(t, &w, &subject, AT_ONCE, e);
    if (st == OK)
        st = safetensors_int(&w.file, "step", -1, -1, INT32_MAX, &step, e);
    if (st == OK)
        st = play_all(t, out, e);
    if (st == OK) {
        snprintf(out->variant, sizeof(out->variant), "%s", w.config.variant->name);
        snprintf(out->backend, sizeof(out->backend), "%s", subject.backend->name);
        out->step = step < 0 ? I64_EMPTY : step;
        out->random = task_random(&t->player.task);
        out->optimum = task_optimum(&t->player.task, &out->exact);
    }
    close_scorer(t, &w);
    free(t);
    return st;
}

enum status play_episode(struct played *out, const struct options *o, struct err *e)
{
    struct scorer *const t = need_room(1, sizeof(*t));
    struct subject subject = {.opt = o, .ckpt = o->ckpt};
    struct weights w = {0};

    t->o = o;
    *out = (struct played){0};
    enum status st = open_scorer(t, &w, &subject, 1, e);
    if (st == OK) {
        struct player *const p = &t->player;
        out->length = task_length(&p->task);
        out->seen = need_room((size_t)out->length, sizeof(*out->seen));
        out->done = need_room((size_t)out->length, sizeof(*out->done));
        out->rewards = need_room((size_t)out->length, sizeof(*out->rewards));
        lm_forget(&t->lm);
        player_begin(p, SPLIT_TEST, o->seed);
        for (int at = 0; at < out->length; at += t->L)
            play_segment(t, at, o->seed, out->rewards + at);
        memcpy(out->seen, p->seen, (size_t)out->length * sizeof(*out->seen));
        memcpy(out->done, p->done, (size_t)out->length * sizeof(*out->done));
    }
    close_scorer(t, &w);
    free(t);
    return st;
}

void played_free(struct played *p)
{
    free(p->seen);
    free(p->done);
    free(p->rewards);
    *p = (struct played){0};
}

/* SPDX-License-Identifier: MIT
 *
 * The files of a training beside its checkpoint F, and their order. F.opt belongs to F: a kill or a
 * full disk at any instant leaves a pair that belongs together. The next state is written to
 * F.opt.new; the rename of F is the one step that makes the new pair valid; then F.opt.new becomes
 * F.opt. Until then the reader takes the one of the two that was written with F's weights. */
#include "train_files.h"
#include "train_state.h"

#include "variants/base/half.h"
#include "variants/model/checkpoint/checkpoint.h"

enum { PATH = 4200 };

#define STATE ".opt"
#define STATE_NEXT ".opt.new"
#define BEST ".best"
#define CURVE ".train.csv" /* tables[TABLE_TRAIN] */

/* path + end; too long a path is an error of whoever opens it. */
static const char *beside(char buf[PATH], const char *path, const char *end)
{
    snprintf(buf, PATH, "%s%s", path, end);
    return buf;
}

static enum status remove_file(const char *path, struct err *e)
{
    return unlink(path) == 0 || errno == ENOENT ? OK : file_fail(e, "remove", path, errno);
}

/* ---- saving ------------------------------------------------------------------------------- */

enum status trainer_save_weights(struct trainer *t, const char *path, struct err *e)
{
    const struct provenance from = {.unit = t->corpus.unit,
                                    .corpus = t->corpus.name,
                                    .corpus_xxh3 = t->corpus.xxh3,
                                    .step = t->optimizer.step,
                                    .seed = t->opt->seed,
                                    .source = *t->origin ? t->origin : NULL,
                                    .tokenizer = *t->beside ? t->beside : NULL,
                                    .lora_alpha = t->lora.alpha,
                                    .lora_turned = t->lora.n > 0 && t->lora.map->turned,
                                    .mask_share = t->hidden ? t->opt->mask_share : 0};

    return checkpoint_save(path, &t->lm.c, &t->lm.params, &from, e);
}

enum status trainer_save_best(struct trainer *t, const char *path, struct err *e)
{
    char best[PATH];

    return trainer_save_weights(t, beside(best, path, BEST), e);
}

enum status trainer_save(struct trainer *t, const char *path, double trained_s, struct err *e)
{
    char state[PATH], next[PATH];

    TRY(train_state_save(t, beside(next, path, STATE_NEXT), trained_s, e));
    if (t->ranks.index > 0)
        return OK;
    TRY(trainer_save_weights(t, path, e));
    return file_move(next, beside(state, path, STATE), e);
}

/* ---- loading ------------------------------------------------------------------------------ */

/* Are two models the same except for sizes, whether or not the difference changes the shape of a
 * tensor? */
static bool same_model(const struct config *a, const struct config *b)
{
    return model_choices_equal(a, b, SCOPE_MODEL) && strcmp(a->order, b->order) == 0 &&
           a->steps == b->steps;
}

static enum status take_weights(struct trainer *t, const struct safetensors *s, int *step,
                                struct err *e)
{
    struct config c;
    const struct config *want = &t->lm.c;

    TRY(checkpoint_lm(s, &c, e));
    if (c.variant != want->variant || c.D != want->D || c.N != want->N)
        return fail(e, E_USAGE,
                    "cannot resume %s: made with --variant %s --d-model %d --layers %d, now %s %d "
                    "%d  -> give the options that it was begun with",
                    s->path, c.variant->name, c.D, c.N, want->variant->name, want->D, want->N);
    if (!same_model(&c, want) || c.H != want->H || c.kv_heads != want->kv_heads || c.V != want->V)
        return fail(
            e, E_USAGE,
            "cannot resume %s: another model of %s  -> give the options that it was begun with",
            s->path, c.variant->name);
    if (t->past > 0 && c.max_seq != want->max_seq)
        return fail(e, E_USAGE,
                    "cannot resume %s: made with windows of %d tokens, now %d  -> use --mem 0, or "
                    "--mem all if it carried a state",
                    s->path, c.max_seq, want->max_seq);
    if (t->lora.n > 0 && checkpoint_fits(s, "", &t->lm.params, NULL) != OK)
        return fail(e, E_USAGE,
                    "cannot resume %s: made with another --lora  -> give the options that it was "
                    "begun with",
                    s->path);
    TRY(safetensors_int(s, "step", -1, 0, INT32_MAX, step, e));
    return checkpoint_load(s, "", &t->lm.params, e);
}

static enum status load_weights(struct trainer *t, const char *path, int *step, struct err *e)
{
    struct safetensors s;

    TRY(safetensors_open(&s, path, e));
    const enum status st = take_weights(t, &s, step, e);
    safetensors_close(&s);
    return st;
}

/* Layers that keep no rows count positions, too, and rotate by them. */
static void seek_without_memory(struct trainer *t)
{
    for (int i = 0; i < t->lm.sublayers.n; i++) {
        struct cache *const c = &t->lm.sublayers.at[i].memory;
        if (c->keep == 0)
            c->seen = (int64_t)t->reads->position(t);
    }
}

enum status trainer_load(struct trainer *t, const char *path, struct err *e)
{
    char state[PATH], next[PATH];
    int step = 0;

    TRY(load_weights(t, path, &step, e));
    beside(state, path, STATE);
    const bool is_next = train_state_fits(t, step, beside(next, path, STATE_NEXT));
    const enum status st = train_state_load(t, step, is_next ? next : state, e);
    TRY(ranks_agree(&t->ranks, st, e)); /* all have read */
    if (t->ranks.index == 0)            /* what the last save did not come to */
        TRY(is_next ? file_move(next, state, e) : remove_file(next, e));
    t->lm.drop.step = (uint64_t)step;
    if (t->opt->mem.v[0] == 0) { /* older files may hold what segments carried all the same */
        lm_forget(&t->lm);
    } else {
        seek_without_memory(t);
        lm_seek(&t->lm, (int64_t)t->reads->position(t));
    }
    lm_build_tables(&t->lm, &t->engine);
    return OK;
}

/* The step of a file, -1 if it cannot be read; its options, "" if it has none. */
static int step_of(const char *path, char **options)
{
    struct safetensors s;
    int step = -1;

    if (safetensors_open(&s, path, &(struct err){""}) != OK)
        return -1;
    (void)safetensors_int(&s, "step", -1, 0, INT32_MAX, &step, &(struct err){""});
    if (options) {
        const char *const text = safetensors_meta(&s, "options");
        *options = strdup(text ? text : "");
        NEED(*options);
    }
    safetensors_close(&s);
    return step;
}

int trainer_saved_step(const char *path) { return step_of(path, NULL); }

enum status trainer_copy(const char *from, const char *to, struct err *e)
{
    static const char *const ends[] = {STATE, CURVE, ""};
    char source[PATH], target[PATH];

    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        TRY(file_copy(beside(source, from, ends[i]), beside(target, to, ends[i]), e));
    return OK;
}

char *trainer_options(const char *path)
{
    static const char *const ends[] = {STATE_NEXT, STATE};
    const int step = step_of(path, NULL);
    char file[PATH], *options = NULL;

    for (size_t i = 0; i < ARRAY_LEN(ends) && step >= 0; i++) {
        if (step_of(beside(file, path, ends[i]), &options) == step)
            return options;
        free(options);
        options = NULL;
    }
    return strdup("");
}

double trainer_saved_s(const char *path)
{
    char file[PATH];
    struct safetensors s;

    if (safetensors_open(&s, beside(file, path, STATE), &(struct err){""}) != OK)
        return NAN;
    const char *const text = safetensors_meta(&s, "trained_s");
    char *end = NULL;
    const double seconds = text ? strtod(text, &end) : NAN;
    const bool whole = text && end != text && !*end;
    safetensors_close(&s);
    return whole ? seconds : NAN;
}

/* ---- who may write them ------------------------------------------------------------------- */

enum status trainer_lock(struct lock *l, const char *path, struct err *e)
{
    char file[PATH], what[PATH];

    snprintf(what, sizeof(what), "checkpoint %s", path);
    return lock_take(l, beside(file, path, ".lock"), what, e);
}

/* ---- leftovers ---------------------------------------------------------------------------- */

/* What saving that was killed has left. */
static enum status clear_halves(const char *path, struct err *e)
{
    static const char *const written[] = {"", BEST, STATE, STATE_NEXT, CURVE};
    char file[PATH];

    for (size_t i = 0; i < ARRAY_LEN(written); i++) {
        const int why = half_clear(beside(file, path, written[i]));
        if (why)
            return file_fail(e, "clear what is beside", path, why);
    }
    return OK;
}

enum status trainer_forget(const char *path, struct err *e)
{
    static const char *const earlier[] = {STATE, STATE_NEXT, BEST};
    TRY(clear_halves(path, e));
    char file[PATH];

    for (size_t i = 0; i < ARRAY_LEN(earlier); i++)
        TRY(remove_file(beside(file, path, earlier[i]), e));
    return OK;
}

enum status trainer_clear(const char *path, bool resume, struct err *e)
{
    if (resume)
        return clear_halves(path, e);
    TRY(remove_file(path, e));
    TRY(file_sync_parent(path, e)); /* never a checkpoint without its state */
    return trainer_forget(path, e);
}

/* ---- the curve ---------------------------------------------------------------------------- */

/* Rows of steps after `step` come again: cut them off. */
static enum status reopen(struct table_file *to, const char *path, int step, struct err *e)
{
    const struct table *t = &tables[TABLE_TRAIN];
    struct rows had = {0};
    enum status st = table_resume(to, t, path, &had, e);

    const struct train_row *row = had.row;
    size_t n = had.n;
    while (n > 0 && row[n - 1].step > step)
        n--;
    if (st == OK && n < had.n) {
        table_close(to, &(struct err){""}); /* nothing was written */
        st = table_replace(t, path, row, n, e);
        if (st == OK)
            st = table_resume(to, t, path, NULL, e);
    }
    rows_free(&had);
    return st;
}

enum status trainer_table(struct table_file *to, const struct options *o, int step, struct err *e)
{
    char path[PATH];

    beside(path, o->ckpt, CURVE);
    if (!o->resume || access(path, F_OK) != 0)
        TRY(table_replace(&tables[TABLE_TRAIN], path, NULL, 0, e));
    return reopen(to, path, step, e);
}

/* SPDX-License-Identifier: MIT
 *
 * What a continuation needs besides the weights to reach the same numbers: both moments of the
 * optimiser and the memory of every layer. The position in the text follows from the step. The
 * reader takes nothing on trust: every tensor by name, type and shape, every number whole and in
 * its range. */
#include "train_state.h"
#include "train_play.h"

#include "harness/cli/option_table.h"
#include "variants/model/checkpoint/checkpoint.h"

#include <inttypes.h>
#include <xxhash.h>

#define FORMAT "bench-optimizer/1"
#define NO_BEST 1e300 /* stands for INFINITY, which JSON lacks */

enum { HASH = 17 };

uint64_t train_state_hash(const struct params *p)
{
    XXH64_hash_t h = 0;

    for (int i = 0; i < p->n; i++)
        h = XXH3_64bits_withSeed(p->v[i].data, p->v[i].n * sizeof(float), h);
    return h;
}

/* A state of the same step may belong to another run. */
static void print_hash(char out[HASH], const struct params *p)
{
    snprintf(out, HASH, "%016" PRIx64, train_state_hash(p));
}

/* ---- what there is ------------------------------------------------------------------------ */

/* The memory of the nth sub-layer that has rows in it; NULL after the last. */
static struct cache *memory_of(const struct trainer *t, int nth)
{
    for (int i = 0, at; (at = sublayers_remembering(&t->lm.sublayers, i)) >= 0; i++) {
        struct cache *const c = &t->lm.sublayers.at[at].memory;
        if (c->keep > 0 && nth-- == 0)
            return c;
    }
    return NULL;
}

/* The i-th array that any sub-layer carries; false after the last. */
static bool carried(const struct trainer *t, int i, struct carried *out, int *sublayer)
{
    for (int k = 0; k < t->lm.sublayers.n; k++) {
        const struct sublayer *const s = &t->lm.sublayers.at[k];
        for (int n = 0; s->kind->carries && s->kind->carries(s, n, out); n++)
            if (!out->given && out->n && i-- == 0) {
                *sublayer = k;
                return true;
            }
    }
    return false;
}

static int carried_count(const struct trainer *t)
{
    struct carried c;
    int n = 0, sublayer;

    while (carried(t, n, &c, &sublayer))
        n++;
    return n;
}

/* The tensor holds the sequences of all ranks. */
static struct tensor carried_tensor(const struct trainer *t, const struct carried *c,
                                    const float *data, int sublayer)
{
    const size_t n = c->common ? c->n : c->n * (size_t)t->ranks.count;
    struct tensor to = {.dtype = DTYPE_F32, .rank = 1, .shape = {(int)n}, .n = n, .data = data};

    snprintf(to.name, sizeof(to.name), "carried.%d.%s", sublayer, c->name);
    return to;
}

static int memory_count(const struct trainer *t)
{
    int n = 0;

    while (memory_of(t, n))
        n++;
    return n;
}

static void memory_name(char name[TENSOR_NAME], int nth)
{
    snprintf(name, TENSOR_NAME, "memory.%d", nth);
}

/* Actions of the episodes that have begun, which make them again: [B,steps]; without any, no tensor.
 */
static struct tensor played_tensor(const struct trainer *t, int at, const float *data)
{
    return (struct tensor){.name = "play.actions",
                           .dtype = DTYPE_F32,
                           .rank = 2,
                           .shape = {t->all_B, at},
                           .n = (size_t)t->all_B * (size_t)at,
                           .data = data};
}

static int moment_count(const struct trainer *t)
{
    int n = 0;

    for (int i = 0; i < t->optimizer.n; i++)
        n += (t->optimizer.m[i] != NULL) + (t->optimizer.v[i] != NULL);
    return n;
}

/* ---- saving ------------------------------------------------------------------------------- */

/* What all ranks have of an array [B,..], one after the other: that of all sequences. Malloc'ed. */
static float *of_all(const struct trainer *t, const float *mine, size_t n)
{
    float *const all = need_room(n * (size_t)t->ranks.count + 1, sizeof(*all));

    ranks_gather(&t->ranks, mine, n * sizeof(float), all);
    return all;
}

/* The memory of a layer without its gaps: [B,M,D]. */
static float *flat_memory(const struct cache *c)
{
    const size_t row = (size_t)c->M * (size_t)c->n;
    float *flat = need_room((size_t)c->B * row + 1, sizeof(*flat));

    for (int b = 0; b < c->B; b++)
        memcpy(flat + (size_t)b * row, cache_rows(c, b), row * sizeof(float));
    return flat;
}

enum status train_state_save(const struct trainer *t, const char *path, double trained_s,
                             struct err *e)
{
    const struct params *p = &t->lm.params;
    const int layers = memory_count(t), moments = moment_count(t);
    const int played = t->play ? play_at(t) : 0;
    const int n = moments + layers + carried_count(t) + (played > 0);
    struct tensor *const tensors = need_room((size_t)n + 1, sizeof(*tensors));
    float **const made = need_room((size_t)n + 1, sizeof(*made)); /* for a tensor, or NULL */
    char step[32], best[32], seconds[32], seen[32], compressed[32];
    char weights[HASH];
    struct carried c;
    int sublayer;

    for (int i = 0, at = 0; i < p->n; i++) {
        if (t->optimizer.m[i])
            tensors[at++] = checkpoint_tensor(&p->v[i], "m.", t->optimizer.m[i]);
        if (t->optimizer.v[i])
            tensors[at++] = checkpoint_tensor(&p->v[i], "v.", t->optimizer.v[i]);
    }
    for (int l = 0; l < layers; l++) {
        const struct cache *m = memory_of(t, l);
        struct tensor *to = &tensors[moments + l];
        const size_t floats = (size_t)m->B * (size_t)m->M * (size_t)m->n;
        float *const mine = flat_memory(m);
        made[moments + l] = of_all(t, mine, floats);
        free(mine);
        *to = (struct tensor){.dtype = DTYPE_F32,
                              .rank = 3,
                              .shape = {t->all_B, m->M, m->n},
                              .n = floats * (size_t)t->ranks.count,
                              .data = made[moments + l]};
        memory_name(to->name, l);
    }
    for (int i = 0; carried(t, i, &c, &sublayer); i++) {
        const int at = moments + layers + i;
        made[at] = of_all(t, c.at, c.n);
        tensors[at] = carried_tensor(t, &c, made[at], sublayer);
    }
    if (played > 0) {
        made[n - 1] = need_room((size_t)t->all_B * (size_t)played, sizeof(**made));
        play_actions(t, made[n - 1]);
        tensors[n - 1] = played_tensor(t, played, made[n - 1]);
    }
    print_hash(weights, p);
    snprintf(step, sizeof(step), "%d", t->optimizer.step);
    snprintf(best, sizeof(best), "%.17g", isinf(t->best_valid) ? NO_BEST : t->best_valid);
    snprintf(seconds, sizeof(seconds), "%.17g", trained_s);
    snprintf(seen, sizeof(seen), "%" PRId64, layers ? memory_of(t, 0)->seen : 0);
    snprintf(compressed, sizeof(compressed), "%d", layers ? memory_of(t, 0)->compressed : 0);
    char *const options = options_canonical(t->opt, CONTINUED_TRAINING);
    const char *const meta[] = {"compressed", compressed, "format",    FORMAT,  "step", step,
                                "best",       best,       "trained_s", seconds, "seen", seen,
                                "weights",    weights,    "options",   options};
    const enum status st =
        t->ranks.index > 0 ? OK
                           : safetensors_write(path, tensors, n, meta, (int)ARRAY_LEN(meta) / 2, e);
    free(options);
    for (int i = 0; i < n; i++)
        free(made[i]);
    free(made);
    free(tensors);
    return st;
}

/* ---- loading: numbers --------------------------------------------------------------------- */

static enum status damaged(const struct safetensors *s, const char *key, const char *must,
                           struct err *e)
{
    const char *const text = safetensors_meta(s, key);

    return fail(e, E_IO, "%s: metadata %s %s%.64s%s  -> %s; train again with --force", s->path, key,
                text ? "is \"" : "is missing", text ? text : "", text ? "\"" : "", must);
}

static enum status real_in(const struct safetensors *s, const char *key, double hi, double *out,
                           struct err *e)
{
    TRY(safetensors_real(s, key, 0, out, e));
    if (!(*out >= 0 && *out <= hi))
        return damaged(s, key, "it must not be negative, nor that large", e);
    return OK;
}

static enum status load_numbers(struct trainer *t, const struct safetensors *s, struct err *e)
{
    TRY(real_in(s, "best", NO_BEST, &t->best_valid, e));
    if (t->best_valid == NO_BEST)
        t->best_valid = INFINITY;
    return real_in(s, "trained_s", NO_BEST, &t->trained_s, e);
}

/* Options that the state belongs to: the loss, what is drawn, what the optimiser keeps, and how it all
 * began. Rates, budgets and texts may change on the way. */
static const char *const fixed[] = {"optimizer",       "muon-scale", "init",       "z-loss",
                                    "dropout",         "seed",       "task",       "objective",
                                    "mask-share",      "from",       "train-only", "lora",
                                    "weight-decay-of", NULL};

/* ---- loading: arrays ---------------------------------------------------------------------- */

static enum status wrong_tensor(const struct safetensors *s, const char *name, struct err *e)
{
    return fail(
        e, E_IO,
        "%s: tensor \"%s\" missing or of another type or shape  -> train again with --force",
        s->path, name);
}

/* Copy n numbers from the at-th on of the tensor that must look like `want` to `to`. */
static enum status load_part(const struct safetensors *s, const struct tensor *want, float *to,
                             size_t at, size_t n, struct err *e)
{
    const struct tensor *const t = safetensors_find(s, want->name);

    if (!t || t->dtype != want->dtype || t->rank != want->rank ||
        memcmp(t->shape, want->shape, (size_t)want->rank * sizeof(*t->shape)) != 0)
        return wrong_tensor(s, want->name, e);
    memcpy(to, (const float *)t->data + at, n * sizeof(float));
    return OK;
}

static enum status load_tensor(const struct safetensors *s, const struct tensor *want, float *to,
                               struct err *e)
{
    return load_part(s, want, to, 0, want->n, e);
}

static enum status load_moments(struct trainer *t, const struct safetensors *s, struct err *e)
{
    const struct params *p = &t->lm.params;

    for (int i = 0; i < p->n; i++) {
        const struct tensor m = checkpoint_tensor(&p->v[i], "m.", NULL);
        const struct tensor v = checkpoint_tensor(&p->v[i], "v.", NULL);
        if (t->optimizer.m[i])
            TRY(load_tensor(s, &m, t->optimizer.m[i], e));
        if (t->optimizer.v[i])
            TRY(load_tensor(s, &v, t->optimizer.v[i], e));
    }
    return OK;
}

static enum status load_carried(struct trainer *t, const struct safetensors *s, struct err *e)
{
    struct carried c;
    int sublayer;

    for (int i = 0; carried(t, i, &c, &sublayer); i++) {
        const struct tensor want = carried_tensor(t, &c, NULL, sublayer);
        TRY(load_part(s, &want, c.at, c.common ? 0 : (size_t)t->ranks.index * c.n, c.n, e));
    }
    return OK;
}

static enum status load_memory(struct trainer *t, const struct safetensors *s, struct err *e)
{
    char name[TENSOR_NAME];
    struct cache *c;
    int l = 0;

    lm_forget(&t->lm);
    for (; (c = memory_of(t, l)); l++) {
        memory_name(name, l);
        const struct tensor *m = safetensors_find(s, name);
        if (m && (m->rank != 3 || m->dtype != DTYPE_F32))
            return wrong_tensor(s, name, e);
        const int most = max_int(c->keep, t->lm.max.M); /* of older files, which no query sees */
        if (!m || m->shape[0] != t->all_B || m->shape[1] > most || m->shape[2] != c->n)
            break;
        const int all = m->shape[1], rows = min_int(all, c->keep);
        cache_reserve(c, rows);
        for (int b = 0; b < t->B; b++)
            memcpy(cache_rows(c, b),
                   (const float *)m->data +
                       (size_t)((t->first + b + 1) * all - rows) * (size_t)c->n,
                   sizeof(float) * (size_t)rows * (size_t)c->n);
        cache_commit(c, rows);
        /* Positions count from there: at most all tokens so far. */
        TRY(safetensors_i64(s, "seen", c->seen, 0, (int64_t)INT32_MAX * INT32_MAX, &c->seen, e));
        TRY(safetensors_int(s, "compressed", 0, 0, c->M, &c->compressed, e));
    }
    memory_name(name, l); /* the first that did not fit, or one too many */
    if (memory_of(t, l) || safetensors_find(s, name))
        return fail(e, E_USAGE,
                    "%s: \"%s\" was made with another --batch, --mem or --d-model  -> give the "
                    "options that it was begun with",
                    s->path, name);
    return OK;
}

/* ---- loading ------------------------------------------------------------------------------ */

/* Was it saved with the weights of `t`, at this step? */
static enum status belongs(const struct trainer *t, int step, const struct safetensors *s,
                           struct err *e)
{
    static const char *const needed[] = {"step", "best", "trained_s"};
    const char *const format = safetensors_meta(s, "format");
    const char *const its_weights = safetensors_meta(s, "weights"); /* older files lack it */
    char weights[HASH];
    int its_step = 0;

    if (!format || strcmp(format, FORMAT) != 0)
        return damaged(s, "format", "it must be " FORMAT, e);
    for (size_t i = 0; i < ARRAY_LEN(needed); i++)
        if (!safetensors_meta(s, needed[i]))
            return damaged(s, needed[i], "it must be a number", e);
    TRY(safetensors_int(s, "step", 0, 0, INT32_MAX, &its_step, e));
    print_hash(weights, &t->lm.params);
    if (its_step != step)
        return fail(e, E_IO,
                    "%s is of step %d, its checkpoint of step %d  -> train again with --force",
                    s->path, its_step, step);
    if (its_weights && strcmp(its_weights, weights) != 0)
        return fail(e, E_IO,
                    "%s was saved with other weights than its checkpoint has  -> train again with "
                    "--force",
                    s->path);
    return OK;
}

bool train_state_fits(const struct trainer *t, int step, const char *path)
{
    struct safetensors s;
    struct err why;

    if (safetensors_open(&s, path, &why) != OK)
        return false;
    const bool fits = belongs(t, step, &s, &why) == OK;
    safetensors_close(&s);
    return fits;
}

static enum status load_played(struct trainer *t, const struct safetensors *s, struct err *e)
{
    const int at = play_at(t);
    float *const actions = need_room((size_t)t->all_B * (size_t)at + 1, sizeof(*actions));
    const struct tensor want = played_tensor(t, at, NULL);

    enum status st = at > 0 ? load_tensor(s, &want, actions, e) : OK;
    if (st == OK)
        st = play_again(t, actions, s->path, e);
    free(actions);
    return st;
}

static enum status load(struct trainer *t, int step, const struct safetensors *s, struct err *e)
{
    const char *const options = safetensors_meta(s, "options");
    int n = moment_count(t) + memory_count(t) + carried_count(t);

    TRY(belongs(t, step, s, e));
    TRY(options_resumable(t->opt, options ? options : "", fixed, s->path, e));
    TRY(load_numbers(t, s, e));
    TRY(load_moments(t, s, e));
    TRY(load_memory(t, s, e));
    TRY(load_carried(t, s, e));
    t->optimizer.step = step; /* which the place in an episode follows from */
    if (t->play)
        TRY(load_played(t, s, e));
    n += t->play && play_at(t) > 0;
    if (s->n_tensors != n)
        return fail(e, E_IO, "%s has %d tensors, this model %d  -> train again with --force",
                    s->path, s->n_tensors, n);
    return OK;
}

enum status train_state_load(struct trainer *t, int step, const char *path, struct err *e)
{
    struct safetensors s;

    TRY(safetensors_open(&s, path, e));
    const enum status st = load(t, step, &s, e);
    safetensors_close(&s);
    return st;
}

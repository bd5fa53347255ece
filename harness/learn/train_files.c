/* SPDX-License-Identifier: MIT
 *
 * The files of a training run: weights, and in a second file what a continuation needs to reach the
 * same numbers: both moments of the optimiser and the memory of every layer. The position in the
 * text follows from the step. */
#include "train.h"

#include "variants/model/checkpoint.h"
#include "variants/model/settings.h"
#include "variants/parts/masks.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH = 4200 };

static void opt_path(char buf[PATH], const char *path) { snprintf(buf, PATH, "%s.opt", path); }

/* ---- saving ------------------------------------------------------------------------------- */

enum status trainer_save_weights(struct trainer *t, const char *path, struct err *e)
{
    const struct provenance from = {.unit = t->corpus.unit,
                                    .corpus = t->corpus.name,
                                    .corpus_xxh3 = t->corpus.xxh3,
                                    .step = t->adam.step,
                                    .seed = t->opt->seed};

    return checkpoint_save(path, &t->lm.c, &t->lm.params, &from, e);
}

/* The memory of the nth sub-layer that has one; NULL after the last. */
static struct cache *memory_of(const struct trainer *t, int nth)
{
    const int at = sublayers_remembering(&t->lm.sublayers, nth);
    struct cache *const c = at < 0 ? NULL : &t->lm.sublayers.at[at].memory;

    return c && c->keep > 0 ? c : NULL;
}

/* The memory of a layer without its gaps: [B,M,D]. */
static float *flat_memory(const struct cache *c)
{
    const size_t row = (size_t)c->M * (size_t)c->n;
    float *flat = calloc((size_t)c->B * row + 1, sizeof(*flat));

    CHECK(flat);
    for (int b = 0; b < c->B; b++)
        memcpy(flat + (size_t)b * row, cache_rows(c, b), row * sizeof(float));
    return flat;
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

static void carried_name(char name[TENSOR_NAME], const struct carried *c, int sublayer)
{
    snprintf(name, TENSOR_NAME, "carried.%d.%s", sublayer, c->name);
}

static void list_carried(const struct trainer *t, struct tensor *to)
{
    struct carried c;
    int sublayer;

    for (int i = 0; carried(t, i, &c, &sublayer); i++) {
        to[i] = (struct tensor){
            .dtype = DTYPE_F32, .rank = 1, .shape = {(int)c.n}, .n = c.n, .data = c.at};
        carried_name(to[i].name, &c, sublayer);
    }
}

static enum status save_state(struct trainer *t, const char *path, double trained_s, struct err *e)
{
    const struct params *p = &t->lm.params;
    int layers = 0;

    while (memory_of(t, layers))
        layers++;
    const int n = 2 * p->n + layers + carried_count(t);
    struct tensor *tensors = calloc((size_t)n, sizeof(*tensors));
    float **memory = calloc((size_t)layers + 1, sizeof(*memory));
    char step[32], best[32], seconds[32], dropout[32], seed[32], seen[32], compressed[32];

    CHECK(tensors && memory);
    for (int i = 0; i < p->n; i++) {
        tensors[2 * i] = checkpoint_tensor(&p->v[i], "m.", t->adam.m[i]);
        tensors[2 * i + 1] = checkpoint_tensor(&p->v[i], "v.", t->adam.v[i]);
    }
    for (int l = 0; l < layers; l++) {
        const struct cache *c = memory_of(t, l);
        memory[l] = flat_memory(c);
        struct tensor *m = &tensors[2 * p->n + l];
        *m = (struct tensor){.dtype = DTYPE_F32,
                             .rank = 3,
                             .shape = {c->B, c->M, c->n},
                             .n = (size_t)c->B * (size_t)c->M * (size_t)c->n,
                             .data = memory[l]};
        snprintf(m->name, sizeof(m->name), "memory.%d", l);
    }
    list_carried(t, tensors + 2 * p->n + layers);
    snprintf(step, sizeof(step), "%d", t->adam.step);
    snprintf(best, sizeof(best), "%.17g", isinf(t->best_valid) ? 1e300 : t->best_valid);
    snprintf(seconds, sizeof(seconds), "%.17g", trained_s);
    snprintf(dropout, sizeof(dropout), "%.17g", t->opt->dropout);
    snprintf(seed, sizeof(seed), "%" PRIu64, t->opt->seed);
    snprintf(seen, sizeof(seen), "%" PRId64, layers ? memory_of(t, 0)->seen : 0);
    snprintf(compressed, sizeof(compressed), "%d", layers ? memory_of(t, 0)->compressed : 0);
    const char *const meta[] = {"compressed", compressed, "format",  "bench-optimizer/1",
                                "step",       step,       "best",    best,
                                "trained_s",  seconds,    "dropout", dropout,
                                "seed",       seed,       "seen",    seen};
    const enum status st = safetensors_write(path, tensors, n, meta, (int)ARRAY_LEN(meta) / 2, e);
    for (int l = 0; l < layers; l++)
        free(memory[l]);
    free(memory);
    free(tensors);
    return st;
}

enum status trainer_save(struct trainer *t, const char *path, double trained_s, struct err *e)
{
    char state[PATH];

    opt_path(state, path);
    const enum status st = save_state(t, state, trained_s, e);
    return st == OK ? trainer_save_weights(t, path, e) : st;
}

/* ---- loading ------------------------------------------------------------------------------ */

static const struct tensor *state_tensor(const struct safetensors *s, const char *prefix,
                                         const char *name, size_t n, struct err *e)
{
    char full[TENSOR_NAME + 8];

    snprintf(full, sizeof(full), "%s%s", prefix, name);
    const struct tensor *t = safetensors_find(s, full);
    if (!t || t->dtype != DTYPE_F32 || t->n != n) {
        fail(e, E_IO, "%s: tensor \"%s\" missing or of another size  -> train again with --force",
             s->path, full);
        return NULL;
    }
    return t;
}

static enum status load_carried(struct trainer *t, const struct safetensors *s, struct err *e)
{
    struct carried c;
    char name[TENSOR_NAME];
    int sublayer;

    for (int i = 0; carried(t, i, &c, &sublayer); i++) {
        carried_name(name, &c, sublayer);
        const struct tensor *from = state_tensor(s, "", name, c.n, e);
        if (!from)
            return E_IO;
        memcpy(c.at, from->data, c.n * sizeof(float));
    }
    return OK;
}

static enum status load_memory(struct trainer *t, const struct safetensors *s, struct err *e)
{
    const char *const seen = safetensors_meta(s, "seen"); /* positions count from there */
    const char *const compressed = safetensors_meta(s, "compressed");
    struct cache *c;

    lm_forget(&t->lm);
    for (int l = 0; (c = memory_of(t, l)); l++) {
        char name[32];
        snprintf(name, sizeof(name), "memory.%d", l);
        const struct tensor *m = safetensors_find(s, name);
        if (!m || m->rank != 3 || m->shape[0] != t->B || m->shape[1] > c->keep ||
            m->shape[2] != c->n)
            return fail(e, E_USAGE, "%s: \"%s\" was made with another --batch, --mem or --d-model",
                        s->path, name);
        const int rows = m->shape[1];
        cache_reserve(c, rows);
        for (int b = 0; b < t->B; b++)
            memcpy(cache_rows(c, b),
                   (const float *)m->data + (size_t)b * (size_t)rows * (size_t)c->n,
                   sizeof(float) * (size_t)rows * (size_t)c->n);
        cache_commit(c, rows);
        if (seen)
            c->seen = strtoll(seen, NULL, 10);
        if (compressed)
            c->compressed = clamp_int((int)strtol(compressed, NULL, 10), 0, c->M);
    }
    return OK;
}

/* Masks and the generated text follow from them. Files older than these keys lack them. */
static enum status same_options(const struct trainer *t, const struct safetensors *s, struct err *e)
{
    const char *const seed = safetensors_meta(s, "seed");
    double dropout;
    char now[32];
    const enum status st = safetensors_real(s, "dropout", 0, &dropout, e);

    if (st != OK)
        return st;
    if (dropout != t->opt->dropout)
        return fail(e, E_USAGE, "cannot resume %s: made with --dropout %g, now %g  -> --dropout %g",
                    s->path, dropout, t->opt->dropout, dropout);
    snprintf(now, sizeof(now), "%" PRIu64, t->opt->seed);
    if (seed && strcmp(seed, now) != 0)
        return fail(e, E_USAGE, "cannot resume %s: made with --seed %s, now %s  -> --seed %s",
                    s->path, seed, now, seed);
    return OK;
}

static enum status load_state(struct trainer *t, const char *path, int *step, struct err *e)
{
    const struct params *p = &t->lm.params;
    struct safetensors s;
    enum status st = safetensors_open(&s, path, e);

    if (st != OK)
        return st;
    st = same_options(t, &s, e);
    if (st == OK)
        st = safetensors_int(&s, "step", -1, 0, INT32_MAX, step, e);
    if (st == OK)
        st = safetensors_real(&s, "best", 1e300, &t->best_valid, e);
    if (st == OK)
        st = safetensors_real(&s, "trained_s", 0, &t->trained_s, e);
    for (int i = 0; st == OK && i < p->n; i++) {
        const struct tensor *m = state_tensor(&s, "m.", p->v[i].name, p->v[i].n, e);
        const struct tensor *v = m ? state_tensor(&s, "v.", p->v[i].name, p->v[i].n, e) : NULL;
        if (!v) {
            st = E_IO;
            break;
        }
        memcpy(t->adam.m[i], m->data, m->n * sizeof(float));
        memcpy(t->adam.v[i], v->data, v->n * sizeof(float));
    }
    if (st == OK)
        st = load_memory(t, &s, e);
    if (st == OK)
        st = load_carried(t, &s, e);
    safetensors_close(&s);
    return st;
}

/* Are two models the same except for sizes, whether or not the difference changes the shape of a
 * tensor? */
static bool same_model(const struct config *a, const struct config *b)
{
    return model_choices_equal(a, b, SCOPE_MODEL) && strcmp(a->order, b->order) == 0 &&
           a->steps == b->steps;
}

static enum status load_weights(struct trainer *t, const char *path, int *step, struct err *e)
{
    struct safetensors s;
    struct config c;
    const struct config *want = &t->lm.c;
    enum status st = safetensors_open(&s, path, e);

    if (st != OK)
        return st;
    st = checkpoint_lm(&s, &c, e);
    if (st == OK && (c.variant != want->variant || c.D != want->D || c.N != want->N))
        st = fail(e, E_USAGE,
                  "cannot resume %s: made with --variant %s --d-model %d --layers %d, now %s %d %d",
                  path, c.variant->name, c.D, c.N, want->variant->name, want->D, want->N);
    if (st == OK &&
        (!same_model(&c, want) || c.H != want->H || c.kv_heads != want->kv_heads || c.V != want->V))
        st = fail(e, E_USAGE,
                  "cannot resume %s: another model of %s  -> the options that it was begun with",
                  path, c.variant->name);
    if (st == OK)
        st = safetensors_int(&s, "step", -1, 0, INT32_MAX, step, e);
    if (st == OK)
        st = checkpoint_load(&s, "", &t->lm.params, e);
    safetensors_close(&s);
    return st;
}

enum status trainer_load(struct trainer *t, const char *path, struct err *e)
{
    char state[PATH];
    int step = 0, opt_step = 0;

    opt_path(state, path);
    enum status st = load_weights(t, path, &step, e);
    if (st == OK)
        st = load_state(t, state, &opt_step, e);
    if (st == OK && step != opt_step)
        st = fail(e, E_IO, "%s is of step %d, %s of step %d  -> they do not belong together", path,
                  step, state, opt_step);
    if (st != OK)
        return st;
    t->adam.step = step;
    t->lm.drop.step = (uint64_t)step;
    lm_build_tables(&t->lm, &t->engine);
    return OK;
}

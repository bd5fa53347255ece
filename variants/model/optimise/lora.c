/* SPDX-License-Identifier: MIT
 *
 * See lora.h. Products are the engine's, in f32. */
#include "lora.h"

#include <fnmatch.h>

struct params lora_model(const struct lora *l, const struct params *p)
{
    struct params model = *p;

    model.n = l->rank ? l->model : p->n;
    return model;
}

/* ---- what is adapted ---------------------------------------------------------------------- */

static bool is_map(const struct param *w)
{
    return w->rank == 2 && w->narrows && (w->group == PARAM_MATRICES || w->group == PARAM_OUTPUT);
}

static bool covers(const char *pattern, const struct param *w)
{
    return is_map(w) && fnmatch(pattern, w->name, 0) == 0;
}

static bool adapts(const char *const *on, int n, const struct param *w)
{
    for (int k = 0; k < n; k++)
        if (covers(on[k], w))
            return true;
    return n == 0 && is_map(w) && w->group == PARAM_MATRICES;
}

static enum status check_pattern(const char *pattern, const struct params *p, struct err *e)
{
    for (int i = 0; i < p->n; i++)
        if (covers(pattern, &p->v[i]))
            return OK;
    return fail(e, E_USAGE, "--lora on=%.60s covers no map  -> such as on=layers.*.attn.*",
                pattern);
}

static void add_part(struct lora *l, const struct lora_map *in, const struct lora_part *part)
{
    int i = 0;

    while (i < l->n && strcmp(l->map[i].name, in->name) != 0)
        i++;
    if (i == l->n)
        l->map[l->n++] = *in;
    struct lora_map *const m = &l->map[i];
    m->part = realloc(m->part, sizeof(*m->part) * (size_t)(m->n + 1));
    NEED(m->part);
    m->part[m->n++] = *part;
}

static int *count_up(int n)
{
    int *const to = need_room((size_t)n, sizeof(*to));

    for (int i = 0; i < n; i++)
        to[i] = i;
    return to;
}

/* A parameter of group matrices, which decays and is stepped as those. */
static void add_param(struct params *p, enum init init, int out, int in, const char *name,
                      char letter)
{
    const int i = params_add(p, init, 1 / sqrtf((float)in), 2, (const int[]){out, in}, "%s.lora_%c",
                             name, letter);

    p->v[i].group = PARAM_MATRICES;
    p->v[i].maps = 1;
}

enum status lora_add(struct lora *l, struct params *p, const char *const *on, int n,
                     lora_place *place, const void *arg, struct err *e)
{
    l->model = p->n;
    l->map = need_room((size_t)p->n, sizeof(*l->map));
    l->base = need_room((size_t)p->n, sizeof(*l->base));
    for (int k = 0; k < n; k++)
        TRY(check_pattern(on[k], p, e));
    for (int i = 0; i < l->model; i++) {
        const struct param *const w = &p->v[i];
        p->v[i].frozen = true;
        if (!adapts(on, n, w))
            continue;
        struct lora_map in = {.out = w->shape[0], .in = w->shape[1]};
        const struct lora_part part = {i, count_up(in.out), count_up(in.in)};
        snprintf(in.name, sizeof(in.name), "%.55s", w->name);
        if (!place || place(arg, w, &in, part.row, part.column)) {
            add_part(l, &in, &part);
            continue;
        }
        free(part.row);
        free(part.column);
        if (n > 0)
            return fail(e, E_UNSUPPORTED,
                        "--lora on=..: %s is not of one map of the file  -> leave it out", w->name);
    }
    for (int k = 0; k < l->n; k++) {
        add_param(p, INIT_UNIFORM_BOTH, l->rank, l->map[k].in, l->map[k].name, 'A');
        add_param(p, INIT_ZERO, l->map[k].out, l->rank, l->map[k].name, 'B');
    }
    return l->n > 0
               ? OK
               : fail(e, E_UNSUPPORTED, "--lora: the model has no map to adapt  -> leave it out");
}

void lora_free(struct lora *l)
{
    for (int k = 0; k < l->n; k++) {
        for (int i = 0; i < l->map[k].n; i++) {
            free(l->map[k].part[i].row);
            free(l->map[k].part[i].column);
        }
        free(l->map[k].part);
    }
    free(l->map);
    free(l->base);
    *l = (struct lora){0};
}

/* ---- numbers ------------------------------------------------------------------------------ */

/* A part of a map, its parameter, and A and B of the map. */
struct at {
    const struct lora_part *part;
    const struct param *w, *a, *b;
};

/* The nth of all parts; false after the last. */
static bool part_at(const struct lora *l, const struct params *p, int nth, struct at *at)
{
    for (int k = 0; k < l->n; nth -= l->map[k++].n)
        if (nth < l->map[k].n) {
            const struct param *const a = &p->v[l->model + 2 * k];
            const struct lora_part *const part = &l->map[k].part[nth];
            *at = (struct at){part, &p->v[part->of], a, a + 1};
            return true;
        }
    return false;
}

void lora_bind(struct lora *l, const struct params *p, struct arena *a)
{
    size_t rows = 0, columns = 0;
    struct at at;

    for (int i = 0; part_at(l, p, i, &at); i++) {
        l->base[at.part->of] = arena_f32(a, PART_WEIGHTS, at.w->n);
        rows = (size_t)max_int((int)rows, at.w->shape[0]);
        columns = (size_t)max_int((int)columns, at.w->shape[1]);
    }
    l->part_a = arena_f32(a, PART_SCRATCH, (size_t)l->rank * columns);
    l->part_b = arena_f32(a, PART_SCRATCH, (size_t)l->rank * rows);
}

void lora_begin(const struct lora *l, const struct params *p, uint64_t seed, int threads)
{
    struct params added = {.v = p->v + l->model, .n = 2 * l->n};
    struct at at;

    params_init_training(&added, seed, 1, threads);
    for (int i = 0; part_at(l, p, i, &at); i++)
        memcpy(l->base[at.part->of], at.w->data, at.w->n * sizeof(float));
}

/* The part's columns of A [r,in] to or, added, from l->part_a; likewise its rows of B [out,r]. */
static void move_columns(const struct lora *l, const struct at *at, float *a, bool back)
{
    const int n = at->w->shape[1], in = at->a->shape[1];

    for (int k = 0; k < l->rank; k++)
        for (int j = 0; j < n; j++) {
            float *const of = &a[k * in + at->part->column[j]], *const here = &l->part_a[k * n + j];
            back ? (*of += *here) : (*here = *of);
        }
}

static void move_rows(const struct lora *l, const struct at *at, float *b, bool back)
{
    for (int i = 0; i < at->w->shape[0]; i++)
        for (int k = 0; k < l->rank; k++) {
            float *const of = &b[at->part->row[i] * l->rank + k], *const here =
                                                                      &l->part_b[i * l->rank + k];
            back ? (*of += *here) : (*here = *of);
        }
}

void lora_gradient(const struct lora *l, const struct params *p, const struct engine *g)
{
    const float s = l->rank ? (float)(l->alpha / l->rank) : 0;
    const int r = l->rank;
    struct at at;

    for (int i = 0; part_at(l, p, i, &at); i++) {
        const int out = at.w->shape[0], in = at.w->shape[1];
        move_columns(l, &at, at.a->data, false);
        mm(g, NT, out, r, in, s, at.w->grad, in, l->part_a, in, 0, l->part_b, r);
        move_rows(l, &at, at.b->grad, true);
        move_rows(l, &at, at.b->data, false);
        mm(g, TN, r, in, out, s, l->part_b, r, at.w->grad, in, 0, l->part_a, in);
        move_columns(l, &at, at.a->grad, true);
    }
}

void lora_merge(const struct lora *l, const struct params *p, const struct engine *g)
{
    const float s = l->rank ? (float)(l->alpha / l->rank) : 0;
    const int r = l->rank;
    struct at at;

    for (int i = 0; part_at(l, p, i, &at); i++) {
        const int out = at.w->shape[0], in = at.w->shape[1];
        move_columns(l, &at, at.a->data, false);
        move_rows(l, &at, at.b->data, false);
        memcpy(at.w->data, l->base[at.part->of], at.w->n * sizeof(float));
        mm(g, NN, out, in, r, s, l->part_b, r, l->part_a, in, 1, at.w->data, in);
    }
}

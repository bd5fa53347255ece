/* SPDX-License-Identifier: MIT
 *
 * See lora.h. Products are the engine's, in f32. */
#include "lora.h"

struct params lora_model(const struct lora *l, const struct params *p)
{
    struct params model = *p;

    model.n = l->rank ? l->model : p->n;
    return model;
}

/* ---- what is adapted ---------------------------------------------------------------------- */

/* Is it a map to adapt? The output is one only if somebody chose what to train. */
static bool is_map(const struct param *w, bool chosen)
{
    return w->rank == 2 && w->narrows && !w->frozen &&
           (w->group == PARAM_MATRICES || (chosen && w->group == PARAM_OUTPUT));
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

/* A parameter of group matrices, which decays and is stepped as those. */
static void add_param(struct params *p, enum init init, int out, int in, const char *name,
                      char letter)
{
    const int i = params_add(p, init, 1 / sqrtf((float)in), 2, (const int[]){out, in}, "%s.lora_%c",
                             name, letter);

    p->v[i].group = PARAM_MATRICES;
    p->v[i].maps = 1;
}

enum status lora_add(struct lora *l, struct params *p, lora_place *place, const void *arg,
                     struct err *e)
{
    bool chosen = false;

    l->model = p->n;
    l->map = need_room((size_t)p->n, sizeof(*l->map));
    for (int i = 0; i < l->model; i++)
        chosen = chosen || p->v[i].frozen;
    for (int i = 0; i < l->model; i++) {
        const struct param *const w = &p->v[i];
        const bool adapts = is_map(w, chosen);
        p->v[i].frozen = true;
        if (!adapts)
            continue;
        struct lora_map in = {.out = w->shape[0]};
        const struct lora_part part = {i, need_room((size_t)in.out, sizeof(*part.row)), NULL};
        snprintf(in.name, sizeof(in.name), "%.55s", w->name);
        for (int r = 0; r < in.out; r++)
            part.row[r] = r;
        if (!place || place(arg, w, &in, part.row)) {
            add_part(l, &in, &part);
            continue;
        }
        free(part.row);
        if (chosen)
            return fail(e, E_UNSUPPORTED,
                        "--lora on=..: %s is not of one map of the file  -> leave it out", w->name);
    }
    for (int k = 0; k < l->n; k++) {
        add_param(p, INIT_UNIFORM_BOTH, l->rank, p->v[l->map[k].part->of].shape[1], l->map[k].name,
                  'A');
        add_param(p, INIT_ZERO, l->map[k].out, l->rank, l->map[k].name, 'B');
    }
    return l->n > 0
               ? OK
               : fail(e, E_UNSUPPORTED, "--lora: no map to adapt  -> such as on=layers.*.attn.*");
}

void lora_free(struct lora *l)
{
    for (int k = 0; k < l->n; k++) {
        for (int i = 0; i < l->map[k].n; i++)
            free(l->map[k].part[i].row);
        free(l->map[k].part);
    }
    free(l->map);
    *l = (struct lora){0};
}

/* ---- numbers ------------------------------------------------------------------------------ */

/* A part of a map, its parameter, and A and B of the map. */
struct at {
    struct lora_part *part;
    const struct param *w, *a, *b;
};

/* The nth of all parts; false after the last. */
static bool part_at(const struct lora *l, const struct params *p, int nth, struct at *at)
{
    for (int k = 0; k < l->n; nth -= l->map[k++].n)
        if (nth < l->map[k].n) {
            const struct param *const a = &p->v[l->model + 2 * k];
            struct lora_part *const part = &l->map[k].part[nth];
            *at = (struct at){part, &p->v[part->of], a, a + 1};
            return true;
        }
    return false;
}

void lora_bind(struct lora *l, const struct params *p, struct arena *a)
{
    int rows = 0;
    struct at at;

    for (int i = 0; part_at(l, p, i, &at); i++) {
        at.part->base = arena_f32(a, PART_WEIGHTS, at.w->n);
        rows = max_int(rows, at.w->shape[0]);
    }
    l->part_b = arena_f32(a, PART_SCRATCH, (size_t)l->rank * (size_t)rows);
}

void lora_begin(const struct lora *l, const struct params *p, uint64_t seed, int threads)
{
    struct params added = {.v = p->v + l->model, .n = 2 * l->n};
    struct at at;

    params_init_training(&added, seed, 1, threads);
    for (int i = 0; part_at(l, p, i, &at); i++)
        memcpy(at.part->base, at.w->data, at.w->n * sizeof(float));
}

/* The part's rows of B to l->part_b, or added from there. */
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
        mm(g, NT, out, r, in, s, at.w->grad, in, at.a->data, in, 0, l->part_b, r);
        move_rows(l, &at, at.b->grad, true);
        move_rows(l, &at, at.b->data, false);
        mm(g, TN, r, in, out, s, l->part_b, r, at.w->grad, in, 1, at.a->grad, in);
    }
}

void lora_merge(const struct lora *l, const struct params *p, const struct engine *g)
{
    const float s = l->rank ? (float)(l->alpha / l->rank) : 0;
    const int r = l->rank;
    struct at at;

    for (int i = 0; part_at(l, p, i, &at); i++) {
        const int out = at.w->shape[0], in = at.w->shape[1];
        move_rows(l, &at, at.b->data, false);
        memcpy(at.w->data, at.part->base, at.w->n * sizeof(float));
        mm(g, NN, out, in, r, s, l->part_b, r, at.a->data, in, 1, at.w->data, in);
    }
}

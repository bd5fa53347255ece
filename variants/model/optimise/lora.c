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

struct params lora_added(const struct lora *l, const struct params *p)
{
    return (struct params){.v = p->v + l->model, .n = 2 * l->n};
}

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

/* A parameter of group matrices, which decays and is stepped as those. */
static void add(struct params *p, enum init init, int out, int in, int of, char letter)
{
    const int i = params_add(p, init, 1 / sqrtf((float)in), 2, (const int[]){out, in},
                             "%.50s.lora_%c", p->v[of].name, letter);

    p->v[i].group = PARAM_MATRICES;
    p->v[i].maps = 1;
}

enum status lora_add(struct lora *l, struct params *p, const char *const *on, int n, struct err *e)
{
    l->model = p->n;
    l->map = need_room((size_t)p->n, sizeof(*l->map));
    l->base = need_room((size_t)p->n, sizeof(*l->base));
    for (int k = 0; k < n; k++)
        TRY(check_pattern(on[k], p, e));
    for (int i = 0; i < l->model; i++) {
        p->v[i].frozen = true;
        if (!adapts(on, n, &p->v[i]))
            continue;
        const int out = p->v[i].shape[0], in = p->v[i].shape[1];
        add(p, INIT_UNIFORM_BOTH, l->rank, in, i, 'A');
        add(p, INIT_ZERO, out, l->rank, i, 'B');
        l->map[l->n++] = i;
    }
    return l->n > 0
               ? OK
               : fail(e, E_UNSUPPORTED, "--lora: the model has no map to adapt  -> leave it out");
}

void lora_bind(struct lora *l, const struct params *p, struct arena *a)
{
    for (int k = 0; k < l->n; k++)
        l->base[k] = arena_f32(a, PART_WEIGHTS, p->v[l->map[k]].n);
}

void lora_begin(const struct lora *l, const struct params *p, uint64_t seed, int threads)
{
    struct params added = lora_added(l, p);

    params_init_training(&added, seed, 1, threads);
    for (int k = 0; k < l->n; k++)
        memcpy(l->base[k], p->v[l->map[k]].data, p->v[l->map[k]].n * sizeof(float));
}

void lora_gradient(const struct lora *l, const struct params *p, const struct engine *g)
{
    const float s = (float)(l->alpha / l->rank);

    for (int k = 0; k < l->n; k++) {
        const struct param *const w = &p->v[l->map[k]], *const a = &p->v[l->model + 2 * k];
        const int out = w->shape[0], in = w->shape[1], r = l->rank;
        mm(g, TN, r, in, out, s, a[1].data, r, w->grad, in, 0, a->grad, in);
        mm(g, NT, out, r, in, s, w->grad, in, a->data, in, 0, a[1].grad, r);
    }
}

void lora_merge(const struct lora *l, const struct params *p, const struct engine *g)
{
    const float s = (float)(l->alpha / l->rank);

    for (int k = 0; k < l->n; k++) {
        const struct param *const w = &p->v[l->map[k]], *const a = &p->v[l->model + 2 * k];
        const int out = w->shape[0], in = w->shape[1], r = l->rank;
        memcpy(w->data, l->base[k], w->n * sizeof(float));
        mm(g, NN, out, in, r, s, a[1].data, r, a->data, in, 1, w->data, in);
    }
}

void lora_free(struct lora *l)
{
    free(l->map);
    free(l->base);
    *l = (struct lora){0};
}

/* SPDX-License-Identifier: MIT
 *
 * The optimiser. Updates are element-wise, so results do not depend on how threads divide them. */
#include "optimizer.h"

const char *const optimizer_name[] = {"adamw", "muon", NULL};

static bool by_muon(const struct optimizer *o, const struct param *p)
{
    return o->kind == OPTIMIZER_MUON && muon_steps(p);
}

void optimizer_bind(struct optimizer *o, const struct params *p, struct arena *a)
{
    if (!o->m) {
        o->beta1 = 0.9;
        o->beta2 = 0.999;
        o->eps = 1e-8;
        o->n = p->n;
        o->m = calloc((size_t)p->n, sizeof(*o->m));
        o->v = calloc((size_t)p->n, sizeof(*o->v));
        NEED(o->m && o->v);
    }
    for (int i = 0; i < p->n; i++) {
        const struct param *const w = &p->v[i];
        o->m[i] = w->frozen ? NULL : arena_f32(a, PART_OPTIMIZER, w->n);
        o->v[i] = w->frozen || by_muon(o, w) ? NULL : arena_f32(a, PART_OPTIMIZER, w->n);
    }
    if (o->kind == OPTIMIZER_MUON)
        muon_bind(&o->muon, p, a);
}

void optimizer_reset(struct optimizer *o, const struct params *p)
{
    for (int i = 0; i < p->n; i++) {
        if (o->m[i])
            memset(o->m[i], 0, p->v[i].n * sizeof(float));
        if (o->v[i])
            memset(o->v[i], 0, p->v[i].n * sizeof(float));
    }
    o->step = 0;
}

void optimizer_free(struct optimizer *o)
{
    free(o->m);
    free(o->v);
    *o = (struct optimizer){0};
}

double grad_norm(const struct params *p, int threads)
{
    double square = 0;

    for (int i = 0; i < p->n; i++)
        if (!p->v[i].buffer && !p->v[i].frozen)
            square = square_added(square, p->v[i].grad, (ptrdiff_t)p->v[i].n, threads);
    return sqrt(square);
}

/* AdamW:
 *   m    = b1 m + (1-b1) g
 *   v    = b2 v + (1-b2) g^2
 *   mhat = m / (1-b1^t)
 *   vhat = v / (1-b2^t)
 *   x   -= lr (mhat / (sqrt(vhat) + eps) + decay x) */
static void adamw(const struct optimizer *o, const struct param *p, float *m, float *v, double lr,
                  double decay, double scale, int threads)
{
    const float b1 = (float)o->beta1, b2 = (float)o->beta2, eps = (float)o->eps;
    const float rate = (float)(lr / (1 - pow(o->beta1, o->step)));
    const float fix = (float)(1 / (1 - pow(o->beta2, o->step)));
    const float shrink = (float)(1 - lr * decay);
    const float factor = (float)scale;
    const ptrdiff_t n = (ptrdiff_t)p->n;

#pragma omp parallel for simd num_threads(team_for(threads, n))
    for (ptrdiff_t e = 0; e < n; e++) {
        const float g = factor * p->grad[e];
        m[e] = b1 * m[e] + (1 - b1) * g;
        v[e] = b2 * v[e] + (1 - b2) * g * g;
        p->data[e] = shrink * p->data[e] - rate * m[e] / (sqrtf(v[e] * fix) + eps);
    }
}

/* Nothing moves at a rate of 0. */
static void advance(const struct param *p, double lr)
{
    const float by = lr > 0 ? 1 : 0;

    for (size_t e = 0; e < p->n; e++)
        p->data[e] += by * p->grad[e];
}

void optimizer_step(struct optimizer *o, struct params *p, const struct engine *g, double lr,
                    double scale)
{
    o->step++;
    for (int i = 0; i < p->n; i++) {
        struct param *const w = &p->v[i];
        const double decay = o->decays >> w->group & 1 ? o->weight_decay : 0;
        if (w->frozen)
            continue;
        if (w->buffer)
            advance(w, lr);
        else if (by_muon(o, w))
            muon_update(&o->muon, w, o->m[i], g, o->scale, lr, decay, scale);
        else
            adamw(o, w, o->m[i], o->v[i], lr, decay, scale, g->threads);
        param_keep_bounds(w);
    }
}

/* SPDX-License-Identifier: MIT
 *
 * The optimiser. Updates are element-wise, so results do not depend on how threads divide them. */
#include "adam.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHARED = 16384 }; /* with fewer elements a second thread does not pay */

void adam_bind(struct adam *o, const struct params *p, struct arena *a)
{
    if (!o->m) {
        *o = (struct adam){
            .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .n = p->n, .weight_decay = o->weight_decay};
        o->m = calloc((size_t)p->n, sizeof(*o->m));
        o->v = calloc((size_t)p->n, sizeof(*o->v));
        NEED(o->m && o->v);
    }
    for (int i = 0; i < p->n; i++) {
        o->m[i] = arena_f32(a, PART_OPTIMIZER, p->v[i].n);
        o->v[i] = arena_f32(a, PART_OPTIMIZER, p->v[i].n);
    }
}

void adam_reset(struct adam *o, const struct params *p)
{
    for (int i = 0; i < p->n; i++) {
        memset(o->m[i], 0, p->v[i].n * sizeof(float));
        memset(o->v[i], 0, p->v[i].n * sizeof(float));
    }
    o->step = 0;
}

void adam_free(struct adam *o)
{
    free(o->m);
    free(o->v);
    *o = (struct adam){0};
}

static double square_sum(const float *x, ptrdiff_t n)
{
    double sum = 0;

#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t e = 0; e < n; e++)
        sum += (double)x[e] * (double)x[e];
    return sum;
}

/* Each parameter in a fixed number of blocks, independent of threads. */
double grad_norm(const struct params *p, int threads)
{
    enum { BLOCKS = 64 };
    double square = 0;

    for (int i = 0; i < p->n; i++) {
        if (p->v[i].buffer)
            continue;
        const ptrdiff_t n = (ptrdiff_t)p->v[i].n, block = (n + BLOCKS - 1) / BLOCKS;
        const float *const grad = p->v[i].grad;
        double part[BLOCKS];
#pragma omp parallel for num_threads(n > SHARED ? threads : 1)
        for (int b = 0; b < BLOCKS; b++) {
            const ptrdiff_t first = b * block, left = n - first;
            part[b] = square_sum(grad + (left > 0 ? first : 0), left < block ? left : block);
        }
        for (int b = 0; b < BLOCKS; b++)
            square += part[b];
    }
    return sqrt(square);
}

/* m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;  x -= lr (mhat / (sqrt(vhat) + eps) + decay x),
 * mhat = m / (1-b1^t), vhat = v / (1-b2^t). */
static void update(const struct adam *o, const struct param *p, float *m, float *v, double lr,
                   double scale, int threads)
{
    const float b1 = (float)o->beta1, b2 = (float)o->beta2, eps = (float)o->eps;
    const float rate = (float)(lr / (1 - pow(o->beta1, o->step)));
    const float fix = (float)(1 / (1 - pow(o->beta2, o->step)));
    const float shrink =
        p->rank > 1 && p->init == INIT_LINEAR ? (float)(1 - lr * o->weight_decay) : 1.0f;
    const float factor = (float)scale;
    const ptrdiff_t n = (ptrdiff_t)p->n;

#pragma omp parallel for simd num_threads(n > SHARED ? threads : 1)
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

void adam_step(struct adam *o, struct params *p, double lr, double scale, int threads)
{
    o->step++;
    for (int i = 0; i < p->n; i++) {
        if (p->v[i].buffer)
            advance(&p->v[i], lr);
        else
            update(o, &p->v[i], o->m[i], o->v[i], lr, scale, threads);
        param_keep_bounds(&p->v[i]);
    }
}

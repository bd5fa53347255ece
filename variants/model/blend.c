/* SPDX-License-Identifier: MIT
 *
 * A trained sum of the states after all layers: equation in blend.h. */
#include "blend.h"
#include "variants/base/loops.h"
#include "variants/model/sublayer/sublayer_inner.h"

#include <math.h>
#include <string.h>

int blend_params(const struct config *c, struct params *p)
{
    return c->transparent ? params_vector(p, INIT_ZERO, 0, c->N + 1, "transparent.", "weight") : -1;
}

static size_t stream(const struct blend *t)
{
    const struct extent max = t->sublayers->max;

    return (size_t)max.B * (size_t)max.L * (size_t)t->sublayers->at->c->D;
}

void blend_bind(struct blend *t, const struct config *c, struct sublayers *sublayers,
                const struct params *p, int at, struct arena *a)
{
    *t = (struct blend){.sublayers = sublayers, .weight = &p->v[at], .N = c->N};
    t->share = arena_f32(a, PART_SCRATCH, (size_t)t->N + 1);
    t->h = arena_f32(a, PART_ACTIVATIONS, stream(t));
}

void blend_bind_grad(struct blend *t, struct arena *a)
{
    t->d = arena_f32(a, PART_ACTIVATIONS, stream(t));
    t->d_share = arena_f32(a, PART_SCRATCH, (size_t)t->N + 1);
}

float *blend_input(const struct blend *t) { return sublayers_input(t->sublayers, t->h); }

/* The state after layer l, from 0; of a forward that was kept all are there. */
static float *state(const struct blend *t, int l)
{
    return t->sublayers->kept && l < t->N ? t->sublayers->work[sublayers_first(t->sublayers, l)].x
                                          : t->h;
}

/* y += by * x */
static void add(float *y, const float *x, float by, size_t n, int threads)
{
#pragma omp parallel for simd num_threads(team_for(threads, n))
    for (size_t i = 0; i < n; i++)
        y[i] += by * x[i];
}

static void softmax(const struct blend *t)
{
    const float *const w = t->weight->data;
    double most = -INFINITY, sum = 0;

    for (int l = 0; l <= t->N; l++)
        most = fmax(most, (double)w[l]);
    for (int l = 0; l <= t->N; l++)
        sum += exp((double)w[l] - most);
    for (int l = 0; l <= t->N; l++)
        t->share[l] = (float)(exp((double)w[l] - most) / sum);
}

void blend_forward(struct blend *t, const struct engine *g, float *out, int B, int L)
{
    struct sublayers *const s = t->sublayers;
    const size_t n = (size_t)(B * L) * (size_t)s->at->c->D;
    float *x = blend_input(t);

    softmax(t);
    memset(out, 0, n * sizeof(*out));
    add(out, x, t->share[0], n, g->threads);
    for (int l = 0; l < t->N; l++) {
        const int first = sublayers_first(s, l);
        float *const next = state(t, l + 1);
        sublayers_part_forward(s, g, first, sublayers_first(s, l + 1) - first, next, x, B, L);
        add(out, next, t->share[l + 1], n, g->threads);
        x = next;
    }
}

/* The weights' gradients, from those of their softmax. */
static void weight_grad(const struct blend *t)
{
    double mean = 0;

    for (int l = 0; l <= t->N; l++)
        mean += (double)t->share[l] * (double)t->d_share[l];
    for (int l = 0; l <= t->N; l++)
        t->weight->grad[l] += (float)((double)t->share[l] * ((double)t->d_share[l] - mean));
}

void blend_backward(struct blend *t, const struct engine *g, float *d_out, int B, int L)
{
    struct sublayers *const s = t->sublayers;
    const size_t n = (size_t)(B * L) * (size_t)s->at->c->D;

    memcpy(t->d, d_out, n * sizeof(*d_out));
    memset(d_out, 0, n * sizeof(*d_out));
    for (int l = t->N; l >= 0; l--) {
        t->d_share[l] = (float)dot_in_order(t->d, state(t, l), n);
        add(d_out, t->d, t->share[l], n, g->threads);
        if (l > 0) {
            const int first = sublayers_first(s, l - 1);
            sublayers_part_backward(s, g, first, sublayers_first(s, l) - first, d_out, B, L);
        }
    }
    weight_grad(t);
}

double blend_flop(const struct blend *t, int B, int L)
{
    return 2.0 * B * L * t->sublayers->at->c->D * (t->N + 1);
}

/* SPDX-License-Identifier: MIT
 *
 * Steps of depth, backward. The number of steps of a position is a constant, and its remainder
 * depends only on the p of earlier steps. With a_t = d_out.h^t, c_t the factor of h^t in the output
 * and s the step at which a position stops,
 *
 *   dL/dw_t = a_t (graves), or (a_t - out_(t-1).d_out) prod_(k>t) (1 - w_k) (t2t)
 *   dL/dp_t = dL/dw_t - dL/dw_s - ponder_tau / (B L)   before a stop, 0 at it */
#include "depth.h"
#include "lm.h"

enum status depth_bind_grad(struct lm *m, const struct engine *g, struct arena *a, struct err *e)
{
    struct depth *const d = m->drive_data;
    const size_t rows = (size_t)d->max.B * (size_t)d->max.L, D = (size_t)d->c->D;
    const size_t steps = (size_t)d->c->steps;

    d->kept = d->halt != NULL; /* otherwise the layers keep all that is needed */
    if (!d->halt)
        return OK;
    d->h = arena_f32(a, PART_ACTIVATIONS, (steps + 1) * rows * D);
    d->coef = arena_take(a, PART_ACTIVATIONS, steps * rows * sizeof(*d->coef));
    d->slope = arena_take(a, PART_ACTIVATIONS, steps * rows * sizeof(*d->slope));
    TAKE(a, PART_ACTIVATIONS, rows * D, &d->d, &d->d_h);
    return OK;
}

/* coef and slope of position i, whose output has the gradient g_i. Entries of step t are d->rows
 * apart. */
static void weigh(const struct depth *d, int i, const float *g_i)
{
    const bool graves = d->c->halt == HALT_GRAVES, stopped = d->remainder[i] > 0;
    const int D = d->c->D, taken = d->steps[i];
    double *const slope = d->slope + i, *const coef = d->coef + i;
    double out = 0, later = 1, top = 0;

    for (int t = 0; t < taken; t++) { /* dL/dw without the product over later steps */
        const ptrdiff_t at = (ptrdiff_t)t * d->rows;
        const double a = dot_in_order(g_i, depth_state(d, t + 1) + (ptrdiff_t)i * D, D),
                     w = d->w[at + i];
        slope[at] = graves ? a : a - out;
        out = w * a + (1 - w) * out;
    }
    for (int t = taken - 1; t >= 0; t--) {
        const ptrdiff_t at = (ptrdiff_t)t * d->rows;
        const double w = d->w[at + i], p = d->p[at + i], d_w = later * slope[at];
        const bool stop = stopped && t == taken - 1;
        coef[at] = later * w;
        if (stop)
            top = d_w + (double)d->c->ponder_tau / d->rows;
        slope[at] = stop ? 0 : (d_w - top) * p * (1 - p);
        if (!graves)
            later *= 1 - w;
    }
}

/* The halting unit reads x in step t: adds to its weights' gradients and, for running positions, to
 * d. */
static void halt_backward(const struct depth *d, const struct engine *g, float *to, const float *x,
                          int t)
{
    const int D = d->c->D;
    const double *const slope = d->slope + (ptrdiff_t)t * d->rows;
    const float *const w = d->halt[0].data;
    double bias = 0;

    for (int i = 0; i < d->rows; i++)
        bias += t < d->steps[i] ? slope[i] : 0;
    d->halt[1].grad[0] += (float)bias;
#pragma omp parallel for num_threads(team_for(g->threads, (size_t)d->rows *(size_t)D))
    for (int e = 0; e < D; e++) {
        double sum = 0;
        for (int i = 0; i < d->rows; i++) {
            const ptrdiff_t at = (ptrdiff_t)i * D + e;
            if (t >= d->steps[i])
                continue;
            sum += slope[i] * (double)x[at];
            to[at] += (float)(slope[i] * (double)w[e]);
        }
        d->halt[0].grad[e] += (float)sum;
    }
}

/* Split the gradient of the state after step t, d_h: d receives the part through the layers, d_h
 * keeps the part that bypasses them. */
static void split(const struct depth *d, const float *d_out, int t)
{
    const int D = d->c->D;
    const double *const coef = d->coef + (ptrdiff_t)t * d->rows;

    for (int i = 0; i < d->rows; i++) {
        const bool running = t < d->steps[i], through = running || d->c->halt == HALT_T2T;
        const float c = running ? (float)coef[i] : 0;
        for (ptrdiff_t at = (ptrdiff_t)i * D; at < (ptrdiff_t)(i + 1) * D; at++) {
            d->d[at] = through ? d->d_h[at] + c * d_out[at] : 0;
            d->d_h[at] = through ? 0 : d->d_h[at];
        }
    }
}

static void step_backward(const struct depth *d, const struct engine *g, const float *d_out, int t,
                          int B, int L)
{
    const int n = depth_at_once(d);
    const size_t size = (size_t)d->rows * (size_t)d->c->D;

    split(d, d_out, t);
    if (d->c->halt == HALT_GRAVES)
        halt_backward(d, g, d->d, depth_state(d, t + 1), t);
    sublayers_part_backward(d->sublayers, g, t * n, n, d->d, B, L);
    if (d->c->halt == HALT_T2T)
        halt_backward(d, g, d->d, d->sublayers->work[t * n].x, t);
    add_times(d->d_h, d->d, 1, size, 1);
}

void depth_backward(struct lm *m, const struct engine *g, const int32_t *target, int B, int L)
{
    struct depth *const d = m->drive_data;
    float *const d_out = m->d_h;
    const size_t size = (size_t)d->rows * (size_t)d->c->D;

    CHECK(d->rows == B * L);
    if (!d->halt) {
        sublayers_backward(d->sublayers, g, d_out, B, L);
        return;
    }
    for (int i = 0; i < d->rows; i++)
        weigh(d, i, d_out + (ptrdiff_t)i * d->c->D);
    memset(d->d_h, 0, size * sizeof(float));
    for (int t = d->ran - 1; t >= 0; t--)
        step_backward(d, g, d_out, t, B, L);
    memcpy(d_out, d->d_h, size * sizeof(float));
}

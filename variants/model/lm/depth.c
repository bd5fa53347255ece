/* SPDX-License-Identifier: MIT
 *
 * Steps of depth, forward (Dehghani et al. 2019, section 2, and Graves 2016). With
 * P^t[i] = sinusoid(i) + sinusoid(t), and per position a = 0 and out = 0 at first:
 *
 *   never    h   = layers(h + P^t)
 *            out = the last h
 *
 *   graves   h    = layers(h + P^t)
 *            p    = s(halt(h))
 *            w    = 1 - a where it stops, else p
 *            out += w h
 *            a   += p
 *            It stops where a + p >= 1 - eps, and at the last step. Then h stays constant, and
 *            others still see it through h + P^t.
 *
 *   t2t      h   = h + P^t
 *            p   = s(halt(h))
 *            h   = layers(h)
 *            w   = as above, but it stops only where a + p > 1 - eps
 *            out = w h + (1 - w) out
 *            After the stop w = 0, and h goes on changing.
 *
 * A position depends only on earlier ones, so halting preserves causality. */
#include "depth.h"
#include "lm.h"

/* ---- binding ------------------------------------------------------------------------------ */

static bool has_steps(const struct config *c) { return c->steps > 0; }

static void add_params(struct lm *m)
{
    const struct config *const c = &m->c;
    struct params *const p = &m->params;

    if (c->halt == HALT_NEVER)
        return;
    params_add(p, INIT_NORMAL, 1 / sqrtf((float)c->D), 2, (const int[]){1, c->D}, "%s",
               "halt.weight");
    params_add(p, INIT_CONST, c->halt_bias, 1, (const int[]){1}, "%s", "halt.bias");
}

static size_t rows_of(const struct depth *d) { return (size_t)d->max.B * (size_t)d->max.L; }

static int n_pos_encoding(const struct depth *d)
{
    return max_int(d->max.L, d->c->step_base + d->c->steps);
}

static enum status bind(struct lm *m, const struct engine *g, struct arena *a, struct err *e)
{
    struct depth *const d = m->drive_data;
    const struct config *const c = &m->c;

    *d = (struct depth){.c = c, .sublayers = &m->sublayers, .max = m->max};
    d->halt = c->halt == HALT_NEVER ? NULL : &m->params.v[m->at_drive];
    const size_t rows = rows_of(d), D = (size_t)c->D, all = rows * (size_t)c->steps;
    d->pos_encoding = arena_f32(a, PART_SCRATCH, (size_t)n_pos_encoding(d) * D);
    TAKE(a, PART_ACTIVATIONS, rows * D, &d->h, &d->y);
    d->steps = arena_take(a, PART_ACTIVATIONS, rows * sizeof(*d->steps));
    d->p = arena_take(a, PART_ACTIVATIONS, all * sizeof(*d->p));
    d->w = arena_take(a, PART_ACTIVATIONS, all * sizeof(*d->w));
    d->sum = arena_take(a, PART_ACTIVATIONS, rows * sizeof(*d->sum));
    d->remainder = arena_take(a, PART_ACTIVATIONS, rows * sizeof(*d->remainder));
    for (int t = 0; a->base && t < n_pos_encoding(d); t++)
        sinusoid_row(d->pos_encoding + (ptrdiff_t)t * c->D, c->D, t, c->sinusoid);
    return OK;
}

/* ---- forward ------------------------------------------------------------------------------ */

float *depth_state(const struct depth *d, int t)
{
    return d->kept ? d->h + (size_t)t * rows_of(d) * (size_t)d->c->D : d->h;
}

static float *input(const struct lm *m, float *out) { return depth_state(m->drive_data, 0); }

static int team(const struct engine *g, size_t n) { return team_for(g->threads, n); }

/* x = h + P^t */
static void enter_step(const struct depth *d, const struct engine *g, float *x, const float *h,
                       int t, int B, int L)
{
    const int D = d->c->D;
    const float *const step = d->pos_encoding + (ptrdiff_t)(d->c->step_base + t) * D;

#pragma omp parallel for num_threads(team(g, (size_t)(B * L) * (size_t)D))
    for (int i = 0; i < B * L; i++) {
        const float *const place = d->pos_encoding + (ptrdiff_t)(i % L) * D;
        for (int e = 0; e < D; e++)
            x[(ptrdiff_t)i * D + e] = h[(ptrdiff_t)i * D + e] + (place[e] + step[e]);
    }
}

/* p of step t, from the states that the halting unit reads. */
static void read_p(const struct depth *d, const struct engine *g, const float *x, int t)
{
    const int D = d->c->D;
    const float *const w = d->halt[0].data;
    double *const p = d->p + (ptrdiff_t)t * d->rows;

#pragma omp parallel for num_threads(team(g, (size_t)d->rows *(size_t)D))
    for (int i = 0; i < d->rows; i++) {
        double logit = (double)d->halt[1].data[0];
        for (int e = 0; e < D; e++)
            logit += (double)w[e] * (double)x[(ptrdiff_t)i * D + e];
        p[i] = 1 / (1 + exp(-logit));
    }
}

static bool runs(const struct depth *d, int i, int t) { return d->steps[i] == t; }

/* The weight of step t for a running position; steps[i] is t + 1 afterwards if it goes on. */
static double halting_weight(struct depth *d, int i, int t)
{
    const bool graves = d->c->halt == HALT_GRAVES, last = t == d->c->steps - 1;
    const double p = d->p[(ptrdiff_t)t * d->rows + i], most = 1 - (double)d->c->halt_eps;
    const double all = d->sum[i] + p;

    if (graves ? last || all >= most : all > most) {
        d->remainder[i] = 1 - d->sum[i];
        d->steps[i] = -(t + 1); /* halted: marked by the sign until the end */
        return d->remainder[i];
    }
    d->sum[i] = all;
    d->steps[i] = t + 1;
    return p;
}

/* After the layers of step t: y becomes the next state and is added to the output. */
static void finish_step(struct depth *d, const struct engine *g, float *out, int t)
{
    const int D = d->c->D;
    const bool graves = d->c->halt == HALT_GRAVES;
    const float *const from = depth_state(d, t);
    float *const to = depth_state(d, t + 1);

#pragma omp parallel for num_threads(team(g, (size_t)d->rows *(size_t)D))
    for (int i = 0; i < d->rows; i++) {
        const ptrdiff_t row = (ptrdiff_t)i * D;
        const bool running = runs(d, i, t);
        const double w = running ? halting_weight(d, i, t) : 0;
        const float weight = (float)w, keep = graves ? 1 : (float)(1 - w);
        const float *const next = running || !graves ? d->y + row : from + row;
        d->w[(ptrdiff_t)t * d->rows + i] = w;
        for (int e = 0; e < D; e++) {
            to[row + e] = next[e];
            if (running)
                out[row + e] = keep * out[row + e] + weight * next[e];
        }
    }
}

static bool any_running(const struct depth *d, int t)
{
    bool any = false;

    for (int i = 0; i < d->rows; i++)
        any = any || runs(d, i, t);
    return any;
}

static void add_up(struct depth *d)
{
    d->ponder = 0;
    for (int i = 0; i < d->rows; i++) {
        d->steps[i] = d->steps[i] < 0 ? -d->steps[i] : d->steps[i];
        d->ponder += (d->steps[i] + d->remainder[i]) / d->rows;
    }
}

static void run_step(struct depth *d, const struct engine *g, float *out, int t, int B, int L)
{
    const int n = depth_at_once(d);
    float *const x = sublayers_part_input(d->sublayers, t * n, n, d->y);

    enter_step(d, g, x, depth_state(d, t), t, B, L);
    if (d->c->halt == HALT_T2T)
        read_p(d, g, x, t);
    sublayers_part_forward(d->sublayers, g, t * n, n, d->y, x, B, L);
    if (d->c->halt == HALT_GRAVES)
        read_p(d, g, d->y, t);
    if (d->halt)
        finish_step(d, g, out, t);
    else
        memcpy(t == d->c->steps - 1 ? out : depth_state(d, t + 1), d->y,
               (size_t)d->rows * (size_t)d->c->D * sizeof(float));
}

static void forward(struct lm *m, const struct engine *g, float *out, int B, int L)
{
    struct depth *const d = m->drive_data;

    d->rows = B * L;
    d->ran = 0;
    for (int i = 0; i < d->rows; i++) {
        d->steps[i] = d->halt ? 0 : d->c->steps;
        d->sum[i] = d->remainder[i] = 0;
    }
    memset(out, 0, (size_t)d->rows * (size_t)d->c->D * sizeof(float));
    while (d->ran < d->c->steps && (!d->halt || any_running(d, d->ran)))
        run_step(d, g, out, d->ran++, B, L);
    add_up(d);
}

/* ---- cost --------------------------------------------------------------------------------- */

double depth_share(const struct depth *d)
{
    double taken = 0;

    for (int i = 0; i < d->rows; i++)
        taken += d->steps[i];
    return d->rows ? taken / ((double)d->rows * d->c->steps) : 1;
}

/* Halted positions do not count, although their keys and values are recomputed. */
static double flop(const struct lm *m, int B, int L, int M)
{
    const struct depth *const d = m->drive_data;
    const double unit = d->halt ? 2.0 * B * L * d->c->D * d->c->steps : 0;

    return (plain_flop(m, B, L, M) + unit) * depth_share(d);
}

static double grad_flop(const struct lm *m, int B, int L, int M)
{
    const struct depth *const d = m->drive_data;
    const double unit = d->halt ? 4.0 * B * L * d->c->D * d->c->steps : 0;

    return (plain_grad_flop(m, B, L, M) + unit) * depth_share(d);
}

static struct layers_run layers_run(const struct lm *m)
{
    const struct depth *const d = m->drive_data;

    return d->halt ? (struct layers_run){d->steps, d->rows, d->c->N, d->ponder}
                   : (struct layers_run){0};
}

static bool result(const struct lm *m, int i, struct drive_result *out)
{
    const struct depth *const d = m->drive_data;

    if (i == 0)
        *out = (struct drive_result){.name = "steps", .whole = d->steps, .n = (size_t)d->rows};
    else
        *out = (struct drive_result){.name = "ponder", .number = (float)d->ponder, .n = 1};
    return d->halt && i < 2;
}

const struct drive drive_depth = {
    .has = has_steps,
    .size = sizeof(struct depth),
    .params = add_params,
    .bind = bind,
    .bind_grad = depth_bind_grad,
    .input = input,
    .forward = forward,
    .backward = depth_backward,
    .flop = flop,
    .grad_flop = grad_flop,
    .layers_run = layers_run,
    .result = result,
};

/* SPDX-License-Identifier: MIT
 *
 * Steps that normalise heads: to unit length, or as root-mean-square and layer norms do, with
 * weights. Sums are double: a head has few numbers, but their squares may be far apart. */
#include "steps.h"

#include <math.h>

enum { WIDTH, CLAMPED, LAYER, EACH }; /* numbers */
enum { EPS };
enum { WEIGHT, BIAS }; /* parameters */

static int team(const struct step_call *c)
{
    enum { PARALLEL_MIN = 1 << 13 };

    return (ptrdiff_t)c->B * c->L * c->in->n > PARALLEL_MIN ? c->g->threads : 1;
}

static double dot(const float *a, const float *b, int n)
{
    double sum = 0;

    for (int e = 0; e < n; e++)
        sum += (double)a[e] * (double)b[e];
    return sum;
}

/* ---- unit length --------------------------------------------------------------------------- */

static double length_of(const struct step *s, const float *x)
{
    const double squares = dot(x, x, s->n[WIDTH]), eps = (double)s->x[EPS];

    return s->n[CLAMPED] ? fmax(sqrt(squares), eps) : sqrt(squares + eps);
}

static void unit_forward(const struct step_call *c)
{
    const int width = c->s->n[WIDTH];

#pragma omp parallel for num_threads(team(c))
    for (int i = 0; i < c->B * c->L; i++)
        for (int at = 0; at < c->in->n; at += width) {
            const float *const x = matrix_row(&c->in[0], i) + at;
            float *const y = matrix_row(&c->out[0], i) + at;
            const float scale = (float)(1 / length_of(c->s, x));
            for (int e = 0; e < width; e++)
                y[e] = x[e] * scale;
        }
}

/* dx = (dy - y (y . dy)) / n; without the second term where n is the clamp. */
static void unit_backward(const struct step_call *c)
{
    const int width = c->s->n[WIDTH];

#pragma omp parallel for num_threads(team(c))
    for (int i = 0; i < c->B * c->L; i++)
        for (int at = 0; at < c->in->n; at += width) {
            const float *const x = matrix_row(&c->in[0], i) + at;
            const float *const y = matrix_row(&c->out[0], i) + at;
            const float *const d = matrix_row(&c->d_out[0], i) + at;
            float *const d_x = matrix_row(&c->d_in[0], i) + at;
            const double n = length_of(c->s, x);
            const bool clamped = c->s->n[CLAMPED] && n <= (double)c->s->x[EPS];
            const double along = clamped ? 0 : dot(y, d, width);
            for (int e = 0; e < width; e++)
                d_x[e] += (float)(((double)d[e] - (double)y[e] * along) / n);
        }
}

int step_unit(struct steps *t, int x, int width, float eps, bool clamped)
{
    static const struct step_kind unit = {
        .name = "unit", .forward = unit_forward, .backward = unit_backward};
    struct step *const s = steps_add(t, &unit);
    const int n = t->value[x].width;

    CHECK(n % width == 0);
    s->n[WIDTH] = width;
    s->n[CLAMPED] = clamped;
    s->x[EPS] = eps;
    step_reads(t, s, x);
    return step_writes(t, s, n);
}

/* ---- norms with weights -------------------------------------------------------------------- */

/* y = (x - mean) scale; mean is 0 for root-mean-square norms. */
struct spread {
    double mean, scale;
};

static struct spread spread_of(const struct step *s, const float *x)
{
    const int n = s->n[WIDTH];
    struct spread p = {0, 0};
    double squares = 0;

    for (int e = 0; s->n[LAYER] && e < n; e++)
        p.mean += (double)x[e] / n;
    for (int e = 0; e < n; e++)
        squares += ((double)x[e] - p.mean) * ((double)x[e] - p.mean);
    p.scale = 1 / sqrt(squares / n + (double)s->x[EPS]);
    return p;
}

/* Weights of the head that begins at column `at`. */
static const float *of_head(const struct step_call *c, int which, int at)
{
    return c->param[which] ? c->param[which]->data + (c->s->n[EACH] ? at : 0) : NULL;
}

static void norm_forward(const struct step_call *c)
{
    const int width = c->s->n[WIDTH];

#pragma omp parallel for num_threads(team(c))
    for (int i = 0; i < c->B * c->L; i++)
        for (int at = 0; at < c->in->n; at += width) {
            const float *const x = matrix_row(&c->in[0], i) + at;
            const float *const w = of_head(c, WEIGHT, at), *const b = of_head(c, BIAS, at);
            float *const y = matrix_row(&c->out[0], i) + at;
            const struct spread p = spread_of(c->s, x);
            for (int e = 0; e < width; e++)
                y[e] = (float)(((double)x[e] - p.mean) * p.scale) * w[e] + (b ? b[e] : 0);
        }
}

/* dx = scale (t - mean t - xh mean(t xh)), t = dy w; without mean t where nothing was subtracted.
 */
static void norm_backward_head(const struct step_call *c, int i, int at)
{
    const int width = c->s->n[WIDTH];
    const float *const x = matrix_row(&c->in[0], i) + at, *const w = of_head(c, WEIGHT, at);
    const float *const d = matrix_row(&c->d_out[0], i) + at;
    float *const d_x = matrix_row(&c->d_in[0], i) + at;
    const struct spread p = spread_of(c->s, x);
    double mean = 0, along = 0;

    for (int e = 0; e < width; e++) {
        const double t = (double)d[e] * (double)w[e];
        mean += c->s->n[LAYER] ? t / width : 0;
        along += t * ((double)x[e] - p.mean) * p.scale / width;
    }
    for (int e = 0; e < width; e++) {
        const double xh = ((double)x[e] - p.mean) * p.scale;
        d_x[e] += (float)(p.scale * ((double)d[e] * (double)w[e] - mean - xh * along));
    }
}

static void norm_backward(const struct step_call *c)
{
    const int width = c->s->n[WIDTH];

#pragma omp parallel for num_threads(team(c))
    for (int i = 0; i < c->B * c->L; i++)
        for (int at = 0; at < c->in->n; at += width)
            norm_backward_head(c, i, at);
    for (int i = 0; i < c->B * c->L; i++)
        for (int at = 0; at < c->in->n; at += width) {
            const float *const x = matrix_row(&c->in[0], i) + at;
            const float *const d = matrix_row(&c->d_out[0], i) + at;
            const int first = c->s->n[EACH] ? at : 0;
            const struct spread p = spread_of(c->s, x);
            for (int e = 0; e < width; e++) {
                c->param[WEIGHT]->grad[first + e] +=
                    d[e] * (float)(((double)x[e] - p.mean) * p.scale);
                if (c->param[BIAS])
                    c->param[BIAS]->grad[first + e] += d[e];
            }
        }
}

int step_norm(struct steps *t, int x, struct head_norm n)
{
    static const struct step_kind norm = {
        .name = "norm", .forward = norm_forward, .backward = norm_backward};
    struct step *const s = steps_add(t, &norm);
    const int all = t->value[x].width, weights = n.each ? all : n.width;

    CHECK(all % n.width == 0);
    s->n[WIDTH] = n.width;
    s->n[LAYER] = n.layer;
    s->n[EACH] = n.each;
    s->x[EPS] = n.eps;
    step_reads(t, s, x);
    step_vector(t, s, INIT_ONE, 0, weights, "norm.weight");
    if (n.bias)
        step_vector(t, s, INIT_ZERO, 0, weights, "norm.bias");
    return step_writes(t, s, all);
}

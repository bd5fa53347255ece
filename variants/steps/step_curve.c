/* SPDX-License-Identifier: MIT
 *
 * Steps that apply one function to each number: y = factor f(x + bias). */
#include "steps.h"

#include <math.h>

enum { CURVE }; /* numbers */
enum { FACTOR };

static inline float logistic(float x) { return 1 / (1 + expf(-x)); }

/* log(1 + e^x) without overflow. */
static inline float softplus(float x) { return fmaxf(x, 0) + log1pf(expf(-fabsf(x))); }

static inline float value_of(enum curve curve, float x, float factor)
{
    switch (curve) {
    case CURVE_NONE:
        return factor * x;
    case CURVE_RELU_SQUARED:
        return factor * fmaxf(x, 0) * fmaxf(x, 0);
    case CURVE_TANH:
        return factor * tanhf(x);
    case CURVE_SIGMOID:
        return factor * logistic(x);
    case CURVE_SILU:
        return factor * x * logistic(x);
    case CURVE_LOG_SIGMOID:
        return -factor * softplus(-x);
    case CURVE_SOFTPLUS:
        return factor * softplus(x);
    case CURVE_EXP:
        return factor * expf(x);
    case CURVE_CAP:
        return factor * tanhf(x / factor);
    }
    return 0;
}

/* dy/dx at x, where the value is y. */
static inline float slope_of(enum curve curve, float x, float y, float factor)
{
    switch (curve) {
    case CURVE_NONE:
        return factor;
    case CURVE_RELU_SQUARED:
        return 2 * factor * fmaxf(x, 0);
    case CURVE_TANH:
        return factor - y * y / factor;
    case CURVE_SIGMOID:
        return y * (1 - y / factor);
    case CURVE_SILU: {
        const float s = logistic(x);
        return factor * s * (1 + x * (1 - s));
    }
    case CURVE_LOG_SIGMOID:
        return factor * logistic(-x);
    case CURVE_SOFTPLUS:
        return factor * logistic(x);
    case CURVE_EXP:
        return y;
    case CURVE_CAP:
        return 1 - y * y / (factor * factor);
    }
    return 0;
}

static int team(const struct step_call *c)
{
    enum { PARALLEL_MIN = 1 << 11 };

    return (ptrdiff_t)c->B * c->L * c->in->n > PARALLEL_MIN ? c->g->threads : 1;
}

static void forward(const struct step_call *c)
{
    const enum curve curve = (enum curve)c->s->n[CURVE];
    const float factor = c->s->x[FACTOR];
    const float *const bias = c->param[0] ? c->param[0]->data : NULL;

#pragma omp parallel for num_threads(team(c))
    for (int i = 0; i < c->B * c->L; i++) {
        const float *const x = matrix_row(&c->in[0], i);
        float *const y = matrix_row(&c->out[0], i);
        for (int e = 0; e < c->in->n; e++)
            y[e] = value_of(curve, x[e] + (bias ? bias[e] : 0), factor);
    }
}

static void backward(const struct step_call *c)
{
    const enum curve curve = (enum curve)c->s->n[CURVE];
    const float factor = c->s->x[FACTOR];
    const float *const bias = c->param[0] ? c->param[0]->data : NULL;

    /* The output's gradient becomes that of x + bias. */
#pragma omp parallel for num_threads(team(c))
    for (int i = 0; i < c->B * c->L; i++) {
        const float *const x = matrix_row(&c->in[0], i), *const y = matrix_row(&c->out[0], i);
        float *const d = matrix_row(&c->d_out[0], i), *const d_x = matrix_row(&c->d_in[0], i);
        for (int e = 0; e < c->in->n; e++) {
            d[e] *= slope_of(curve, x[e] + (bias ? bias[e] : 0), y[e], factor);
            d_x[e] += d[e];
        }
    }
    if (bias)
        matrix_add_columns(&c->d_out[0], c->B * c->L, c->param[0]->grad);
}

static const struct step_kind kind = {.name = "curve", .forward = forward, .backward = backward};

static struct step *curve_of(struct steps *t, int x, enum curve curve, float factor)
{
    struct step *const s = steps_add(t, &kind);

    s->n[CURVE] = curve;
    s->x[FACTOR] = factor;
    step_reads(t, s, x);
    return s;
}

int step_apply(struct steps *t, int x, enum curve curve, float factor)
{
    return step_writes(t, curve_of(t, x, curve, factor), t->value[x].width);
}

int step_curve(struct steps *t, int x, enum curve curve, float factor, const char *bias,
               enum init init, float arg)
{
    struct step *const s = curve_of(t, x, curve, factor);
    const int n = t->value[x].width;

    step_vector(t, s, init, arg, n, bias);
    return step_writes(t, s, n);
}

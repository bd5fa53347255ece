/* SPDX-License-Identifier: MIT
 *
 * Steps that combine two values, or a value and a parameter, number by number. */
#include "steps.h"

enum { A, B_ }; /* inputs */
enum { PER };   /* numbers */

#define EACH_ROW                                                                                   \
    _Pragma("omp parallel for num_threads(step_team(c))") for (int i = 0; i < c->B * c->L; i++)

/* ---- copy ---------------------------------------------------------------------------------- */

/* To rows that a cache may have. */
static void copy_forward(const struct step_call *c)
{
    EACH_ROW
    {
        const float *const a = matrix_row(&c->in[A], i);
        float *const y = matrix_row(&c->out[0], i % c->L) + i / c->L * c->out->batch;
        for (int e = 0; e < c->out->n; e++)
            y[e] = a[e];
    }
}

static void copy_backward(const struct step_call *c) { step_add_gradient(c, A); }

static const struct step_kind copy = {
    .name = "copy", .forward = copy_forward, .backward = copy_backward};

void step_copy_to(struct steps *t, int to, int a)
{
    step_writes_to(t, STEP_READING(t, &copy, a), to);
}

int step_copy(struct steps *t, int a)
{
    return step_writes(t, STEP_READING(t, &copy, a), t->value[a].width);
}

/* ---- sum ----------------------------------------------------------------------------------- */

static void plus_forward(const struct step_call *c)
{
    EACH_ROW
    {
        const float *const a = matrix_row(&c->in[A], i), *const b = matrix_row(&c->in[B_], i);
        float *const y = matrix_row(&c->out[0], i);
#pragma omp simd
        for (int e = 0; e < c->in[B_].n; e++)
            y[e] = a[e] + b[e];
        for (int e = c->in[B_].n; e < c->out->n; e++)
            y[e] = a[e];
    }
}

static void plus_backward(const struct step_call *c)
{
    step_add_gradient(c, A);
    EACH_ROW
    {
        const float *const d = matrix_row(&c->d_out[0], i);
        float *const d_b = matrix_row(&c->d_in[B_], i);
#pragma omp simd
        for (int e = 0; e < c->d_in[B_].n; e++)
            d_b[e] += d[e];
    }
}

int step_plus(struct steps *t, int a, int b)
{
    static const struct step_kind plus = {
        .name = "plus", .forward = plus_forward, .backward = plus_backward, .pure = true};
    struct step *const s = STEP_READING(t, &plus, a, b);

    steps_need(t, t->value[a].width >= t->value[b].width,
               "step_plus() of a narrow and a wide value  -> the wide one first");
    return step_writes(t, s, t->value[a].width);
}

/* ---- product ------------------------------------------------------------------------------- */

/* y = a b, each number of b for `per` of a; the same b for all rows if they are 0 floats apart. */
static void multiply(const struct step_call *c, const struct matrix *factors)
{
    const int per = c->s->n[PER];

    EACH_ROW
    {
        const float *const a = matrix_row(&c->in[A], i), *const b = matrix_row(factors, i);
        float *const y = matrix_row(&c->out[0], i);
        if (per == 1) {
#pragma omp simd
            for (int e = 0; e < c->out->n; e++)
                y[e] = a[e] * b[e];
            continue;
        }
        for (int h = 0; h < factors->n; h++) {
#pragma omp simd
            for (int e = h * per; e < (h + 1) * per; e++)
                y[e] = a[e] * b[h];
        }
    }
}

/* d_a += d b */
static void multiply_grad(const struct step_call *c, const struct matrix *factors)
{
    const int per = c->s->n[PER];

    EACH_ROW
    {
        const float *const d = matrix_row(&c->d_out[0], i), *const b = matrix_row(factors, i);
        float *const d_a = matrix_row(&c->d_in[A], i);
        if (per == 1) {
#pragma omp simd
            for (int e = 0; e < c->out->n; e++)
                d_a[e] += d[e] * b[e];
            continue;
        }
        for (int h = 0; h < factors->n; h++) {
#pragma omp simd
            for (int e = h * per; e < (h + 1) * per; e++)
                d_a[e] += d[e] * b[h];
        }
    }
}

/* d_b += d a, of row i */
static void factors_grad(const struct step_call *c, int i, float *d_b)
{
    const float *const a = matrix_row(&c->in[A], i), *const d = matrix_row(&c->d_out[0], i);
    const int per = c->s->n[PER];

    if (per == 1) {
#pragma omp simd
        for (int e = 0; e < c->out->n; e++)
            d_b[e] += d[e] * a[e];
        return;
    }
    for (int h = 0; h * per < c->out->n; h++) {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int e = h * per; e < (h + 1) * per; e++)
            sum += d[e] * a[e];
        d_b[h] += sum;
    }
}

static void times_forward(const struct step_call *c) { multiply(c, &c->in[B_]); }

static void times_backward(const struct step_call *c)
{
    multiply_grad(c, &c->in[B_]);
    EACH_ROW factors_grad(c, i, matrix_row(&c->d_in[B_], i));
}

static const struct step_kind times = {
    .name = "times", .forward = times_forward, .backward = times_backward};

int step_times(struct steps *t, int a, int b)
{
    struct step *const s = STEP_READING(t, &times, a, b);

    steps_need(t, t->value[a].width % t->value[b].width == 0,
               "step_times() of widths that do not divide each other  -> the wide one first");
    s->n[PER] = t->value[a].width / t->value[b].width;
    return step_writes(t, s, t->value[a].width);
}

static struct matrix weights(const struct step_call *c)
{
    return (struct matrix){.at = c->param[0]->data, .n = c->param[0]->shape[0]};
}

static void scale_forward(const struct step_call *c)
{
    const struct matrix w = weights(c);

    multiply(c, &w);
}

/* Rows in order, which all add to the weights' gradients. */
static void scale_backward(const struct step_call *c)
{
    const struct matrix w = weights(c);

    multiply_grad(c, &w);
    for (int i = 0; i < c->B * c->L; i++)
        factors_grad(c, i, c->param[0]->grad);
}

static int scaled(struct steps *t, int a, int per, const char *name, enum init init, float arg)
{
    static const struct step_kind scale = {
        .name = "scale", .forward = scale_forward, .backward = scale_backward};
    struct step *const s = STEP_READING(t, &scale, a);

    s->n[PER] = per;
    step_vector(t, s, init, arg, t->value[a].width / per, name);
    return step_writes(t, s, t->value[a].width);
}

int step_scale(struct steps *t, int a, const char *name, float initial)
{
    return scaled(t, a, 1, name, INIT_CONST, initial);
}

int step_blend(struct steps *t, int f, int a, int g, int b)
{
    const int of[] = {f, a, g, b}, n = t->value[a].width;

    for (int i = 0; i < 4; i++)
        steps_need(t, t->value[of[i]].width == n,
                   "step_blend() of different widths  -> equal ones");
    return step_plus(t, step_times(t, f, a), step_times(t, g, b));
}

int step_skip(struct steps *t, int a, int b, int per, const char *name)
{
    const int n = t->value[a].width;

    steps_need(
        t, t->value[b].width == n && n % per == 0,
        "step_skip() of different widths, or of parts of groups  -> equal ones, whole groups");
    return step_plus(t, a, scaled(t, b, per, name, INIT_ONE, 0));
}

/* ---- decays from a rate -------------------------------------------------------------------- */

enum { A_PER, W_PER }; /* numbers: columns of the result for one of a, and for one of w */

/* Neither is infinite: an input of 0 keeps all and its gradient counts, whatever the rate; and 0 of
 * the gradient of a decay that keeps nothing is 0. NaN stays. */
static float rate_of(float w)
{
    const float rate = expf(w);

    return rate > FLT_MAX ? -FLT_MAX : -rate;
}

static float decay_of(float rate, float a)
{
    const float y = rate * a;

    return y < -FLT_MAX ? -FLT_MAX : y;
}

static void rate_forward(const struct step_call *c)
{
    const float *const w = c->param[0]->data;
    const int a_per = c->s->n[A_PER], w_per = c->s->n[W_PER];

    EACH_ROW
    {
        const float *const a = matrix_row(&c->in[A], i);
        float *const y = matrix_row(&c->out[0], i);
        for (int h = 0; h < c->out->n / w_per; h++) {
            const float rate = rate_of(w[h]);
            for (int e = h * w_per; e < (h + 1) * w_per; e++)
                y[e] = decay_of(rate, a[e / a_per]);
        }
    }
}

static void rate_backward(const struct step_call *c)
{
    const struct param *const w = c->param[0];
    const int a_per = c->s->n[A_PER], w_per = c->s->n[W_PER];

    EACH_ROW
    {
        const float *const d = matrix_row(&c->d_out[0], i);
        float *const d_a = matrix_row(&c->d_in[A], i);
        for (int h = 0; h < c->out->n / w_per; h++) {
            const float rate = rate_of(w->data[h]);
            for (int e = h * w_per; e < (h + 1) * w_per; e++)
                d_a[e / a_per] += rate * d[e];
        }
    }
    for (int i = 0; i < c->B * c->L; i++) {
        const float *const y = matrix_row(&c->out[0], i), *const d = matrix_row(&c->d_out[0], i);
        for (int e = 0; e < c->out->n; e++)
            w->grad[e / w_per] += d[e] * y[e];
    }
}

int step_rate(struct steps *t, int a, int per, bool wide, const char *name)
{
    static const struct step_kind rate = {
        .name = "rate", .forward = rate_forward, .backward = rate_backward};
    struct step *const s = STEP_READING(t, &rate, a);
    const int n = t->value[a].width;

    steps_need(t, wide || n % per == 0, "step_rate() of parts of groups  -> whole groups");
    s->n[A_PER] = wide ? per : 1;
    s->n[W_PER] = wide ? 1 : per;
    if (wide) /* (Gu et al. 2022, arXiv:2206.11893, S4D-Real) */
        step_tensor(t, s, INIT_LOG_COUNT, 0, 2, (const int[]){n, per}, name);
    else
        step_vector(t, s, INIT_LOG, 16, n / per, name);
    return step_writes(t, s, wide ? n * per : n);
}

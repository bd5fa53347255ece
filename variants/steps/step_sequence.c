/* SPDX-License-Identifier: MIT
 *
 * Steps along a sequence: a short causal convolution, and the difference to the row before. Each
 * carries the last rows of its input to the next segment. */
#include "steps.h"
#include "variants/base/loops.h"

#include <math.h>
#include <string.h>

static int team(const struct step_call *c)
{
    return team_for(c->g->threads, (ptrdiff_t)c->B * c->L * c->in->n);
}

/* Row t of sequence b, t < 0 being one of the rows before: those of memory in front of it, or the
 * `kept` ones of a state; NULL = zeros. */
static const float *row_at(const struct step_call *c, int kept, int b, int t)
{
    if (c->s->kind->reads_front)
        return t >= -c->front.n ? c->in->at + b * c->front.stride + t * c->in->row : NULL;
    if (t >= 0)
        return matrix_row(&c->in[0], (ptrdiff_t)b * c->L + t);
    return c->before[0] ? c->before[0] + ((ptrdiff_t)b * kept + kept + t) * c->in->n : NULL;
}

/* The last `kept` rows of each sequence, those before it included. */
static void keep_rows(const struct step_call *c, int kept)
{
    for (int b = 0; c->after[0] && b < c->B; b++)
        for (int i = 0; i < kept; i++) {
            const float *const from = row_at(c, kept, b, c->L - kept + i);
            float *const to = c->after[0] + ((ptrdiff_t)b * kept + i) * c->in->n;
            if (from)
                memcpy(to, from, sizeof(float) * (size_t)c->in->n);
            else
                memset(to, 0, sizeof(float) * (size_t)c->in->n);
        }
}

/* ---- convolution --------------------------------------------------------------------------- */

enum { WEIGHT, BIAS }; /* parameters */
/* Outputs of conv: the result, and what its function reads; of taps: the sum. */
enum { RESULT, SUM };
enum { TAPS, CURVE }; /* numbers */

/* The weights of conv by taps, [taps, n], so that channels lie side by side; behind them, backward,
 * their gradients. */
static size_t conv_scratch(const struct engine *g, const struct step *s, struct extent max,
                           bool backward)
{
    return sizeof(float) * (size_t)s->n[TAPS] * (size_t)s->width[0] * (backward ? 2 : 1);
}

static float *by_taps(const struct step_call *c)
{
    const int n = c->in->n, taps = c->s->n[TAPS];
    float *const w = c->scratch;

    for (int e = 0; e < n; e++)
        for (int s = 0; s < taps; s++)
            w[(ptrdiff_t)s * n + e] = c->param[WEIGHT]->data[(ptrdiff_t)e * taps + s];
    return w;
}

/* sum_s W[:,s] x_{t-taps+1+s} + bias: the last tap is the row itself. */
static void convolve(const struct step_call *c, const float *by_tap, int b, int t, float *y)
{
    const int n = c->in->n, taps = c->s->n[TAPS];

    for (int e = 0; e < n; e++)
        y[e] = c->param[BIAS] ? c->param[BIAS]->data[e] : 0;
    for (int s = 0; s < taps; s++) {
        const float *const x = row_at(c, taps - 1, b, t - taps + 1 + s);
        const float *const w = by_tap + (ptrdiff_t)s * n;
        if (!x)
            continue;
#pragma omp simd
        for (int e = 0; e < n; e++)
            y[e] += w[e] * x[e];
    }
}

static void convolve_all(const struct step_call *c, const float *by_tap, const struct matrix *y)
{
#pragma omp parallel for num_threads(team(c))
    for (int i = 0; i < c->B * c->L; i++)
        convolve(c, by_tap, i / c->L, i % c->L, matrix_row(y, i));
}

static void conv_forward(const struct step_call *c)
{
    convolve_all(c, by_taps(c), &c->out[SUM]);
    c->g->ops.act(&(struct act){.kind = (enum act_kind)c->s->n[CURVE],
                                .y = c->out[RESULT].at,
                                .x = c->out[SUM].at,
                                .rows = c->B * c->L,
                                .n = c->in->n,
                                .threads = c->g->threads});
    keep_rows(c, c->s->n[TAPS] - 1);
}

/* The gradient of row t of sequence b; NULL = it has none. */
static float *d_row_at(const struct step_call *c, int b, int t)
{
    if (c->s->kind->reads_front)
        return t >= -c->d_front.n ? c->d_in->at + b * c->d_front.stride + t * c->d_in->row : NULL;
    return t >= 0 ? matrix_row(&c->d_in[0], (ptrdiff_t)b * c->L + t) : NULL;
}

/* dx_j += W[:,s] dy_t and dW[:,s] += dy_t x_j with j = t - taps + 1 + s: for channels [from, to),
 * so that threads share neither gradients of weights nor rows. */
static void convolve_back(const struct step_call *c, const struct matrix *d_y, const float *by_tap,
                          float *d_by_tap, int from, int to)
{
    const int taps = c->s->n[TAPS], n = c->in->n;

    for (int i = 0; i < c->B * c->L; i++) {
        const int b = i / c->L, t = i % c->L;
        const float *const d = matrix_row(d_y, i);
        for (int s = 0; s < taps; s++) {
            const int j = t - taps + 1 + s;
            const float *const w = by_tap + (ptrdiff_t)s * n, *const x = row_at(c, taps - 1, b, j);
            float *const d_w = d_by_tap + (ptrdiff_t)s * n, *const d_x = d_row_at(c, b, j);
            if (!x)
                continue;
#pragma omp simd
            for (int e = from; e < to; e++)
                d_w[e] += d[e] * x[e];
            if (!d_x)
                continue;
#pragma omp simd
            for (int e = from; e < to; e++)
                d_x[e] += w[e] * d[e];
        }
    }
}

static void convolve_all_back(const struct step_call *c, const struct matrix *d_y,
                              const float *by_tap, float *d_by_tap)
{
    enum { CHANNELS = 64 };
    const int n = c->in->n;

#pragma omp parallel for num_threads(team(c))
    for (int e = 0; e < n; e += CHANNELS)
        convolve_back(c, d_y, by_tap, d_by_tap, e, min_int(e + CHANNELS, n));
    if (c->param[BIAS])
        matrix_add_columns(d_y, c->B * c->L, c->param[BIAS]->grad);
}

static void conv_backward(const struct step_call *c)
{
    const int n = c->in->n, taps = c->s->n[TAPS];
    const size_t all = (size_t)taps * (size_t)n;
    const float *const w = by_taps(c);
    float *const d_w = (float *)c->scratch + all;

    memset(d_w, 0, all * sizeof(float));
    c->g->ops.act_grad(&(struct act_grad){.kind = (enum act_kind)c->s->n[CURVE],
                                          .d_x = c->d_out[SUM].at,
                                          .d_y = c->d_out[RESULT].at,
                                          .x = c->out[SUM].at,
                                          .rows = c->B * c->L,
                                          .n = c->in->n,
                                          .threads = c->g->threads});
    convolve_all_back(c, &c->d_out[SUM], w, d_w);
    for (int e = 0; e < n; e++)
        for (int s = 0; s < taps; s++)
            c->param[WEIGHT]->grad[(ptrdiff_t)e * taps + s] += d_w[(ptrdiff_t)s * n + e];
}

static double conv_flop(const struct step *s, int B, int L)
{
    return 2.0 * s->n[TAPS] * s->width[0] * B * L;
}

static const struct step_kind conv = {.name = "conv",
                                      .forward = conv_forward,
                                      .backward = conv_backward,
                                      .scratch = conv_scratch,
                                      .flop = conv_flop};

int step_conv(struct steps *t, int x, int taps, bool bias, bool silu)
{
    const int n = t->value[x].width;
    struct step *const s = steps_add(t, &conv);

    s->n[TAPS] = taps;
    s->n[CURVE] = silu ? ACT_SWISH : ACT_NONE;
    step_reads(t, s, x);
    step_tensor(t, s, INIT_UNIFORM_BOTH, 1 / sqrtf((float)taps), 2, (const int[]){n, taps},
                "conv.weight");
    if (bias)
        step_vector(t, s, INIT_ZERO, 0, n, "conv.bias");
    step_state(t, s, "conv", (taps - 1) * n, 0);
    const int y = step_writes(t, s, n);
    step_writes(t, s, n);
    return y;
}

static void taps_forward(const struct step_call *c)
{
    convolve_all(c, c->param[WEIGHT]->data, &c->out[0]);
}

static void taps_backward(const struct step_call *c)
{
    convolve_all_back(c, &c->d_out[0], c->param[WEIGHT]->data, c->param[WEIGHT]->grad);
}

static int taps_of(struct steps *t, const struct step_kind *of, int x, int taps, const char *weight,
                   const char *bias)
{
    const int n = t->value[x].width;
    struct step *const s = steps_add(t, of);

    s->n[TAPS] = taps;
    step_reads(t, s, x);
    step_tensor(t, s, INIT_UNIFORM_BOTH, 1 / sqrtf((float)taps), 2, (const int[]){taps, n}, weight);
    if (bias)
        step_vector(t, s, INIT_ZERO, 0, n, bias);
    return step_writes(t, s, n);
}

int step_taps(struct steps *t, int taps, const char *weight, const char *bias)
{
    static const struct step_kind kind = {.name = "taps",
                                          .forward = taps_forward,
                                          .backward = taps_backward,
                                          .pure = true,
                                          .reads_front = true,
                                          .flop = conv_flop};

    return taps_of(t, &kind, STEPS_INPUT, taps, weight, bias);
}

int step_window(struct steps *t, int x, int taps, const char *weight)
{
    static const struct step_kind kind = {.name = "window",
                                          .forward = taps_forward,
                                          .backward = taps_backward,
                                          .pure = true,
                                          .flop = conv_flop};

    return taps_of(t, &kind, x, taps, weight, NULL);
}

/* ---- difference to the row before ---------------------------------------------------------- */

static void shift_forward(const struct step_call *c)
{
    CHECK(c->in->at);
#pragma omp parallel for num_threads(team(c))
    for (int i = 0; i < c->B * c->L; i++) {
        const float *const x = matrix_row(&c->in[0], i);
        const float *const last = row_at(c, 1, i / c->L, i % c->L - 1);
        float *const y = matrix_row(&c->out[0], i);
        for (int e = 0; e < c->in->n; e++)
            y[e] = (last ? last[e] : 0) - x[e];
    }
    keep_rows(c, 1);
}

static void shift_backward(const struct step_call *c)
{
    CHECK(c->d_out[0].at);
#pragma omp parallel for num_threads(team(c))
    for (int i = 0; i < c->B * c->L; i++) {
        const float *const d = matrix_row(&c->d_out[0], i);
        const float *const next = i % c->L + 1 < c->L ? matrix_row(&c->d_out[0], i + 1) : NULL;
        float *const d_x = matrix_row(&c->d_in[0], i);
        for (int e = 0; e < c->in->n; e++)
            d_x[e] += (next ? next[e] : 0) - d[e];
    }
}

static const struct step_kind shift = {
    .name = "shift", .forward = shift_forward, .backward = shift_backward};

int step_shift(struct steps *t, int x, const char *name)
{
    struct step *const s = steps_add(t, &shift);

    step_reads(t, s, x);
    step_state(t, s, name, t->value[x].width, 0);
    return step_writes(t, s, t->value[x].width);
}

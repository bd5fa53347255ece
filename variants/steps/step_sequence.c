/* SPDX-License-Identifier: MIT
 *
 * Steps along a sequence: a short causal convolution, and the difference to the row before. Each
 * carries the last rows of its input to the next segment. */
#include "steps.h"
#include "variants/backends/conv.h"
#include "variants/parts/linear.h"

/* The rows of its input, after those of memory in front of it or those of its state. */
static struct conv conv_of(const struct step_call *c, int taps, const float *by_tap)
{
    const bool front = c->s->kind->reads_front;

    return (struct conv){.B = c->B,
                         .L = c->L,
                         .n = c->in->n,
                         .taps = taps,
                         .x = c->in->at,
                         .x_at = {front ? c->front.stride : c->L * c->in->row, c->in->row},
                         .front = front ? c->front.n : 0,
                         .before = c->before[0],
                         .w = by_tap};
}

static void keep_rows(const struct step_call *c, const struct conv *rows)
{
    if (c->after[0])
        conv_after(rows, c->after[0]);
}

/* ---- convolution --------------------------------------------------------------------------- */

enum { WEIGHT, BIAS }; /* parameters */
/* Outputs of conv: the result, and what its function reads; of taps: the sum. */
enum { RESULT, SUM };
enum { TAPS, CURVE }; /* numbers */

/* The weights of conv by taps, and behind them, backward, their gradients. */
static size_t conv_scratch(const struct engine *g, const struct step *s, struct extent max,
                           bool backward)
{
    return sizeof(float) * (size_t)s->n[TAPS] * (size_t)s->width[0] * (backward ? 2 : 1);
}

static struct stride rows_of(const struct step_call *c, const struct matrix *m)
{
    return (struct stride){c->L * m->row, m->row};
}

static struct conv convolve(const struct step_call *c, const float *by_tap, const struct matrix *y)
{
    struct conv of = conv_of(c, c->s->n[TAPS], by_tap);

    of.bias = c->param[BIAS] ? c->param[BIAS]->data : NULL;
    conv_forward(&of, y->at, rows_of(c, y), c->g->threads);
    return of;
}

static void conv_step_forward(const struct step_call *c)
{
    conv_by_taps(c->scratch, c->param[WEIGHT]->data, c->in->n, c->s->n[TAPS]);
    const struct conv of = convolve(c, c->scratch, &c->out[SUM]);
    linear_epilogue(c->g,
                    (struct act){.kind = (enum act_kind)c->s->n[CURVE], .y = c->out[RESULT].at},
                    c->out[SUM].at, c->B * c->L, c->in->n);
    keep_rows(c, &of);
}

static void convolve_back(const struct step_call *c, const struct matrix *d_y, const float *by_tap,
                          float *d_by_tap)
{
    const bool front = c->s->kind->reads_front;
    const struct conv of = conv_of(c, c->s->n[TAPS], by_tap);

    conv_backward(&of,
                  &(struct conv_grad){
                      .d_y = d_y->at,
                      .d_y_at = rows_of(c, d_y),
                      .d_x_at = {front ? c->d_front.stride : c->L * c->d_in->row, c->d_in->row},
                      .front = front ? c->d_front.n : 0,
                      .d_x = c->d_in->at,
                      .d_w = d_by_tap,
                      .d_bias = c->param[BIAS] ? c->param[BIAS]->grad : NULL},
                  c->g->threads);
}

static void conv_step_backward(const struct step_call *c)
{
    const int n = c->in->n, taps = c->s->n[TAPS];
    const size_t all = (size_t)taps * (size_t)n;
    float *const w = c->scratch, *const d_w = w + all;

    conv_by_taps(w, c->param[WEIGHT]->data, n, taps);
    memset(d_w, 0, all * sizeof(float));
    c->g->ops.act_grad(&(struct act_grad){.kind = (enum act_kind)c->s->n[CURVE],
                                          .d_x = c->d_out[SUM].at,
                                          .d_y = c->d_out[RESULT].at,
                                          .x = c->out[SUM].at,
                                          .rows = c->B * c->L,
                                          .n = n,
                                          .threads = c->g->threads});
    convolve_back(c, &c->d_out[SUM], w, d_w);
    for (int e = 0; e < n; e++)
        for (int s = 0; s < taps; s++)
            c->param[WEIGHT]->grad[(ptrdiff_t)e * taps + s] += d_w[(ptrdiff_t)s * n + e];
}

static double conv_flop(const struct step *s, int B, int L)
{
    return 2.0 * s->n[TAPS] * s->width[0] * B * L;
}

static const struct step_kind conv = {.name = "conv",
                                      .forward = conv_step_forward,
                                      .backward = conv_step_backward,
                                      .scratch = conv_scratch,
                                      .flop = conv_flop};

int step_conv(struct steps *t, int x, int taps, bool bias, bool silu)
{
    const int n = t->value[x].width;
    struct step *const s = STEP_READING(t, &conv, x);

    s->n[TAPS] = taps;
    s->n[CURVE] = silu ? ACT_SWISH : ACT_NONE;
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
    convolve(c, c->param[WEIGHT]->data, &c->out[0]);
}

static void taps_backward(const struct step_call *c)
{
    convolve_back(c, &c->d_out[0], c->param[WEIGHT]->data, c->param[WEIGHT]->grad);
}

static int taps_of(struct steps *t, const struct step_kind *of, int x, int taps, const char *weight,
                   const char *bias)
{
    const int n = t->value[x].width;
    struct step *const s = STEP_READING(t, of, x);

    s->n[TAPS] = taps;
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
    const struct conv rows = conv_of(c, 2, NULL);

    CHECK(c->in->at);
#pragma omp parallel for num_threads(step_team(c))
    for (int i = 0; i < c->B * c->L; i++) {
        const float *const x = matrix_row(&c->in[0], i);
        const float *const last = conv_row(&rows, i / c->L, i % c->L - 1);
        float *const y = matrix_row(&c->out[0], i);
        for (int e = 0; e < c->in->n; e++)
            y[e] = (last ? last[e] : 0) - x[e];
    }
    keep_rows(c, &rows);
}

static void shift_backward(const struct step_call *c)
{
    CHECK(c->d_out[0].at);
#pragma omp parallel for num_threads(step_team(c))
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
    struct step *const s = STEP_READING(t, &shift, x);

    step_state(t, s, name, t->value[x].width, 0);
    return step_writes(t, s, t->value[x].width);
}

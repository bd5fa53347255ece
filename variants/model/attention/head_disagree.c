/* SPDX-License-Identifier: MIT
 *
 * Disagreement of heads (Li et al. 2018, "Multi-Head Attention with Disagreement Regularization",
 * arXiv:1810.10183): a loss of training only, small where heads differ. For each attention, x being
 * the outputs of heads, or their values:
 *
 *   loss = weight mean over rows: 1/H^2 sum over i, j: cos(x^i, x^j)
 *
 * As published heads are compared in their subspaces (values) or by their outputs; the third way, by
 * positions, needs probabilities, which fused kernels do not store. Forward is as without it. */
#include "around.h"

enum { SUMS }; /* [B,L,dh] of the unit vectors of the heads of a row */

struct disagreement {
    float outputs, values; /* coef of each; 0 = off */
};

static const struct disagreement *numbers_of(const struct config *c)
{
    return config_numbers(c, SLOT_head_disagree);
}

static bool attends(const struct config *c) { return c->pos && (!c->mixer || c->stack.n); }
static bool on(const struct config *c)
{
    return numbers_of(c)->outputs > 0 || numbers_of(c)->values > 0;
}

static const struct choice rows[] = {
    ROW_REAL(struct disagreement, outputs, "disagree_outputs", 0, FLT_MAX,
             "weight of the likeness of the outputs of heads in the loss", .absent = "0",
             .applies = attends, SETTING),
    ROW_REAL(struct disagreement, values, "disagree_values", 0, FLT_MAX,
             "weight of the likeness of the values of heads in the loss", .absent = "0",
             .applies = attends, SETTING),
    {0},
};

/* d += scale d/dx of the sum over pairs of cos, for the H heads x [H,width] of one row: with unit
 * vectors u^i and their sum s, that of head i is 2 (s - (s.u^i) u^i) / |x^i|. */
static void add_grad(float *d, const float *x, int H, int width, double scale, float *s)
{
    for (int e = 0; e < width; e++)
        s[e] = 0;
    for (int i = 0; i < H; i++) {
        const float *const at = x + (ptrdiff_t)i * width;
        const double length = sqrt(dot_in_order(at, at, (size_t)width));
        for (int e = 0; e < width && length > 0; e++)
            s[e] += (float)((double)at[e] / length);
    }
    for (int i = 0; i < H; i++) {
        const float *const at = x + (ptrdiff_t)i * width;
        float *const to = d + (ptrdiff_t)i * width;
        const double length = sqrt(dot_in_order(at, at, (size_t)width));
        double along = 0;
        for (int e = 0; e < width && length > 0; e++)
            along += (double)s[e] * (double)at[e] / length;
        for (int e = 0; e < width && length > 0; e++)
            to[e] += (float)(2 * scale / length * ((double)s[e] - along * (double)at[e] / length));
    }
}

/* Of `n` rows of each sequence, which lie one after the other from x and d on. */
static void all_rows(const struct part_call *t, double coef, float *d, const float *x,
                     ptrdiff_t stride, int n, int H, int width)
{
    const double scale = coef / ((double)t->n.B * n * (double)H * (double)H);
    const ptrdiff_t row = (ptrdiff_t)H * width;

#pragma omp parallel for num_threads(team_for(t->g->threads, t->n.B *n *row))
    for (int i = 0; i < t->n.B * n; i++)
        add_grad(d + i / n * stride + i % n * row, x + i / n * stride + i % n * row, H, width,
                 scale, t->d_at[SUMS] + (ptrdiff_t)i * width);
}

static void arrays(const struct sublayer *s, struct around_call n, size_t floats[AROUND_ARRAYS])
{
    if (n.backward)
        floats[SUMS] = (size_t)n.B * (size_t)n.L * (size_t)s->c->dh;
}

static void output_grad(const struct part_call *t, float *d_o)
{
    const struct config *const c = t->s->c;
    const double coef = (double)numbers_of(c)->outputs;

    if (coef > 0)
        all_rows(t, coef, d_o, t->w->array[AT_O], (ptrdiff_t)t->n.L * config_q_width(c), t->n.L,
                 c->H, c->dh);
}

/* Of the new rows: those of memory are constants. */
static void operands_grad(const struct part_call *t, struct attn_grad *d)
{
    const struct config *const c = t->s->c;
    const ptrdiff_t row = config_kv_width(c), before = (t->n.K - t->n.L) * row;
    const double coef = (double)numbers_of(c)->values;

    if (coef > 0)
        all_rows(t, coef, d->d_v + before, t->w->array[AT_V] + before, t->n.K * row, t->n.L,
                 c->kv_heads, c->dh);
}

const struct around_part head_disagree = {
    .said = "disagreement of heads",
    .on = on,
    .training = true,
    .numbers = &(const struct part_numbers){rows, PRESET(struct disagreement, .outputs = 1)},
    /* heads of one softmax, and rows as many as there are tokens */
    .excludes = EXCLUDES(HAS_head_diff, HAS_POOLED, HAS_LAZY),
    .arrays = arrays,
    .map = {.output_grad = output_grad, .operands_grad = operands_grad},
};

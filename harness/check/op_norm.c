/* SPDX-License-Identifier: MIT
 *
 * Cases of norms and of their gradients: rows with offsets and additions, results over operands,
 * rows with a divisor near zero. */
#include "op_inner.h"

enum { HEADS = 3 };
enum { NORM_MODES = 48, NORM_CASES = NORM_MODES * NORM_OP_KINDS * OP_SIZES };

/* An adaptive weight, of centred kinds without heads. */
static const float ADA_C = 1.5f, ADA_K = 0.1f;

static void adapt(struct norm *o)
{
    o->weight = o->bias = NULL;
    o->ada_c = ADA_C;
    o->ada_k = ADA_K;
}

/* Hostile rows: equal elements, all zero, shorter than eps (divisors near zero); and a NaN, which
 * affects its whole row. */
static void hostile_rows(float *x, int rows, int n)
{
    for (int i = 0; i < rows; i++)
        for (int e = 0; e < n; e++) {
            float *at = x + i * n + e;
            *at = i % 5 == 0 ? 0.7f : i % 5 == 1 ? 0 : i % 5 == 2 ? *at * 1e-8f : *at;
            if (i % 5 == 3 && e == n / 2)
                *at = NAN;
        }
}

static void norm_make(struct trial *t, int at)
{
    static const float means[] = {0, 30, 1e4f, 0}; /* the last hostile */
    const bool large = at >= NORM_CASES;
    const int mode = large ? 0 : pick(&at, NORM_MODES), rows_of = mode / 4 % 4;

    t->kind = large ? NORM_LAYER : pick(&at, NORM_OP_KINDS);
    set_size(t, large ? op_square : op_sizes[at]);
    if (t->kind == NORM_UNBIASED && t->n == 1) /* undefined */
        t->kind = NORM_LAYER;
    t->over = mode & 2;
    const bool centred = norm_centred((enum norm_kind)t->kind);
    const bool adaptive = mode & 32 && centred;
    const int heads = mode & 16 && t->kind != NORM_SCALE ? HEADS : 0;
    const size_t weights = (size_t)t->n * (heads ? HEADS : 1);
    float *x = operand(t, t->size, "x", means[rows_of], 1);
    float *bias = operand(t, weights, "bias", 0, 1);
    const bool biased = heads ? mode != 16 : centred;
    if (rows_of == 3 && t->n <= 130) /* the bound does not count the roundings of longer sums */
        hostile_rows(x, t->rows, t->n);
    t->a.norm = (struct norm){.kind = (enum norm_kind)t->kind,
                              .x = x,
                              .add = mode & 1 ? operand(t, t->size, "add", 0, 1) : NULL,
                              .weight = operand(t, weights, "weight", 1, 0.5f),
                              .bias = biased ? bias : NULL,
                              .rows = t->rows,
                              .n = t->n,
                              .heads = heads,
                              .eps = 1e-5f};
    if (adaptive)
        adapt(&t->a.norm);
    output(t, "y", t->size, x);
    snprintf(t->name, sizeof(t->name), "kind %d, %dx%d, mode %d", t->kind, t->rows, t->n, mode);
}

RUN(norm, norm, o.y = out[0], o.x = t->in_place ? out[0] : o.x)

static void norm_bounds(struct trial *t)
{
    for (int i = 0; i < t->rows; i++) {
        const struct moments m = moments_of(&t->a.norm, i);
        for (int e = 0; e < t->n; e++) {
            const int at = i * t->n + e;
            t->out[0].bound[at] = norm_bound(&t->a.norm, &m, (double)t->out[0].want[at], i, e);
        }
    }
}

/* ---- its gradient ---------------------------------------------------------------------------- */

enum { NORM_GRAD_MODES = 6, NORM_GRAD_CASES = NORM_GRAD_MODES * NORM_OP_KINDS * OP_GRAD_SIZES };

static void norm_grad_make(struct trial *t, int at)
{
    const bool large = at >= NORM_GRAD_CASES;
    const int mode = large ? 0 : pick(&at, NORM_GRAD_MODES), over = mode & 1;

    t->kind = large ? NORM_LAYER : pick(&at, NORM_OP_KINDS);
    set_size(t, large ? op_square : op_grad_sizes[at]);
    if (t->kind == NORM_UNBIASED && t->n == 1) /* undefined */
        t->kind = NORM_LAYER;
    t->over = over;
    const bool centred = norm_centred((enum norm_kind)t->kind);
    const int heads = mode & 2 && t->kind != NORM_SCALE ? HEADS : 0;
    const bool adaptive = mode & 4 && centred;
    const size_t n = (size_t)t->n * (heads ? HEADS : 1);
    float *x = operand(t, t->size, "x", 1, 1), *weight = operand(t, n, "weight", 1, 0.5f);
    float *d_y = operand(t, t->size, "d_y", 0, 1);
    t->a.norm = (struct norm){.kind = (enum norm_kind)t->kind,
                              .x = x,
                              .weight = weight,
                              .rows = t->rows,
                              .n = t->n,
                              .heads = heads,
                              .eps = 1e-5f};
    t->a.norm_grad = (struct norm_grad){.kind = (enum norm_kind)t->kind,
                                        .d_y = d_y,
                                        .x = x,
                                        .weight = weight,
                                        .stats = scratch(t, NORM_STATS * (size_t)t->rows),
                                        .rows = t->rows,
                                        .n = t->n,
                                        .heads = heads,
                                        .eps = 1e-5f};
    output(t, "d_x", t->size, d_y);
    if (adaptive) {
        adapt(&t->a.norm);
        t->a.norm_grad.weight = NULL;
        t->a.norm_grad.ada_c = ADA_C;
        t->a.norm_grad.ada_k = ADA_K;
    }
    if (!adaptive)
        output_sums(t, "d_weight", t->kind == NORM_SCALE ? 1 : n);
    if (!adaptive && (centred || heads))
        output_sums(t, "d_bias", n);
    snprintf(t->name, sizeof(t->name), "kind %d, %dx%d, %d heads%s", t->kind, t->rows, t->n, heads,
             over ? ", in place" : "");
}

RUN(norm_grad, norm_grad, o.d_x = out[0], o.d_y = t->in_place ? out[0] : o.d_y,
    o.d_weight = t->n_out > 1 ? out[1] : NULL, o.d_bias = t->n_out > 2 ? out[2] : NULL)

/* xhat is off by U 2 T / root if a mean is subtracted, and by its factors; t, the two sums of n
 * products and the last three steps round 2 n + 40 times. All of it is relative to the sizes of the
 * three terms of d_x. */
static void norm_grad_bounds(struct trial *t)
{
    const struct norm *f = &t->a.norm;
    const float *d_y = t->a.norm_grad.d_y;
    double weight = 0, bias = 0;

    for (int i = 0; i < t->rows; i++) {
        const struct moments m = moments_of(f, i);
        const double xhat = m.deviation / m.root;
        double most = 0, sum_t = 0, sum_tx = 0;
        for (int e = 0; e < t->n; e++) {
            const double te = fabs((double)d_y[i * t->n + e]) * norm_gain(f, &m, i, e);
            most = fmax(most, te);
            sum_t += te;
            sum_tx += te * fabs(norm_term(f, i, e) - m.mean) / m.root;
        }
        const double pull = f->kind == NORM_SCALE      ? 1
                            : f->kind == NORM_UNBIASED ? 1.0 / (t->n - 1)
                                                       : 1.0 / t->n;
        const double relative =
            U * (2 * t->n + 40 + (norm_centred(f->kind) ? 8 * m.largest / m.root : 0));
        const double terms = (most + sum_t / t->n + xhat * sum_tx * pull) / m.root;
        for (int e = 0; e < t->n; e++) {
            const double d = fabs((double)d_y[i * t->n + e]);
            t->out[0].bound[i * t->n + e] = relative * terms;
            weight += d * xhat * (relative + U * t->rows);
            bias += d * U * t->rows;
        }
    }
    for (int k = 1; k < t->n_out; k++)
        for (size_t e = 0; e < t->out[k].n; e++)
            t->out[k].bound[e] = sum_bound(k == 1 ? weight : bias, (double)t->out[k].want[e]);
}

/* ---- the rows -------------------------------------------------------------------------------- */

const struct op_row op_norms[NORM_ROWS] = {
    {"norm", OP_norm, NORM_CASES, norm_make, norm_run, norm_bounds,
     .timing = {{"512x512", TIMED_ELEMENTS(512 * 512)}}},
    {"norm_grad", OP_norm_grad, NORM_GRAD_CASES, norm_grad_make, norm_grad_run, norm_grad_bounds,
     .same_bits = true, .timing = {{"512x512", TIMED_ELEMENTS(512 * 512)}}},
};

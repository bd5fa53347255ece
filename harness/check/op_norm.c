/* SPDX-License-Identifier: MIT
 *
 * Cases of norms and of their gradients: rows with offsets and additions, results over operands,
 * rows with a divisor near zero. */
#include "op_inner.h"

enum { HEADS = 3 };
enum { NORM_MODES = 48, NORM_CASES = NORM_MODES * NORM_OP_KINDS * OP_SIZES };

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

static size_t norm_weights(const struct norm *o) { return (size_t)o->n * (o->heads ? HEADS : 1); }

/* Operands of one kind and size, but for a bias and what is added; returns x, of that mean. Heads,
 * and an adaptive weight of centred kinds, are for kinds that can have them. */
static float *norm_operands(struct trial *t, int kind, const int size[2], float mean, bool by_head,
                            bool adaptive)
{
    set_size(t, size);
    t->kind = kind == NORM_UNBIASED && t->n == 1 ? NORM_LAYER : kind; /* undefined */
    const bool ada = adaptive && norm_centred((enum norm_kind)t->kind);
    float *const x = operand(t, t->size, "x", mean, 1);

    t->a.norm = (struct norm){.kind = (enum norm_kind)t->kind,
                              .x = x,
                              .rows = t->rows,
                              .n = t->n,
                              .heads = by_head && t->kind != NORM_SCALE ? HEADS : 0,
                              .eps = 1e-5f,
                              .ada_c = ada ? 1.5f : 0,
                              .ada_k = ada ? 0.1f : 0};
    if (!ada)
        t->a.norm.weight = operand(t, norm_weights(&t->a.norm), "weight", 1, 0.5f);
    return x;
}

static void norm_make(struct trial *t, int at)
{
    static const float means[] = {0, 30, 1e4f, 0}; /* the last hostile */
    const bool large = at >= NORM_CASES;
    const int mode = large ? 0 : pick(&at, NORM_MODES), rows_of = mode / 4 % 4;
    const int kind = large ? NORM_LAYER : pick(&at, NORM_OP_KINDS);
    float *const x = norm_operands(t, kind, large ? op_square : op_sizes[at], means[rows_of],
                                   mode & 16, mode & 32);
    struct norm *const o = &t->a.norm;

    t->over = mode & 2;
    if (rows_of == 3 && t->n <= 130) /* the bound does not count the roundings of longer sums */
        hostile_rows(x, t->rows, t->n);
    if (mode & 1)
        o->add = operand(t, t->size, "add", 0, 1);
    if (o->weight && (o->heads ? mode != 16 : norm_centred(o->kind)))
        o->bias = operand(t, norm_weights(o), "bias", 0, 1);
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
    const int mode = large ? 0 : pick(&at, NORM_GRAD_MODES);
    const int kind = large ? NORM_LAYER : pick(&at, NORM_OP_KINDS);

    norm_operands(t, kind, large ? op_square : op_grad_sizes[at], 1, mode & 2, mode & 4);
    const struct norm *const o = &t->a.norm;
    float *d_y = operand(t, t->size, "d_y", 0, 1);
    t->over = mode & 1;
    t->a.norm_grad = (struct norm_grad){.kind = o->kind,
                                        .d_y = d_y,
                                        .x = o->x,
                                        .weight = o->weight,
                                        .stats = scratch(t, NORM_STATS * (size_t)t->rows),
                                        .rows = t->rows,
                                        .n = t->n,
                                        .heads = o->heads,
                                        .eps = o->eps,
                                        .ada_c = o->ada_c,
                                        .ada_k = o->ada_k};
    output(t, "d_x", t->size, d_y);
    if (o->weight)
        output_sums(t, "d_weight", t->kind == NORM_SCALE ? 1 : norm_weights(o));
    if (o->weight && (norm_centred(o->kind) || o->heads))
        output_sums(t, "d_bias", norm_weights(o));
    snprintf(t->name, sizeof(t->name), "kind %d, %dx%d, %d heads%s", t->kind, t->rows, t->n,
             o->heads, t->over ? ", in place" : "");
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

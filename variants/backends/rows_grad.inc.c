/* SPDX-License-Identifier: MIT
 *
 * Gradients of the row operations over the words of vec.h. Included once per instruction set by
 * rows_grad_avx2.c and rows_grad_avx512.c, which export the functions under their names.
 *
 * What sums down a column is dealt to threads by columns: each strip of VL columns is summed in
 * chunks of rows, and the chunks one after the other, so a sum does not depend on who computes it.
 */
#include "rows_shared.h"

enum { COLUMN_CHUNK = 32 }; /* rows summed in a register before they join the sum in memory */

typedef void columns_fn(const void *op, int i0, int i1, int j0, int j1);

/* Run all rows of columns [0, n), chunk by chunk; a range of columns is a whole number of strips.
 */
static void each_column(columns_fn *run, const void *op, int rows, int n, int threads)
{
    const int strips = (n + VL - 1) / VL;
    const int parts = (int64_t)rows * n < ROWS_WORTH_FORK ? 1 : clamp_int(threads, 1, strips);

#pragma omp parallel for num_threads(parts) schedule(static, 1)
    for (int t = 0; t < parts; t++) {
        const int j0 = (int)((int64_t)strips * t / parts) * VL;
        const int j1 = min_int((int)((int64_t)strips * (t + 1) / parts) * VL, n);
        for (int i = 0; i < rows; i += COLUMN_CHUNK)
            run(op, i, min_int(i + COLUMN_CHUNK, rows), j0, j1);
    }
}

VEC_INLINE void add_upto(float *dst, int left, vf a)
{
    vst_upto(dst, left, vadd(vld_upto(dst, left, v0()), a));
}

/* ---- softmax ------------------------------------------------------------------------------ */

static void softmax_grad_rows(const void *arg, int first, int last)
{
    const struct softmax_grad *o = arg;
    const int n = o->cols;

    for (int i = first; i < last; i++) {
        const float *p = o->p + i * o->ld;
        float *d = o->d + i * o->ld;
        vf sum = v0();

        if (o->rel)
            add_relative(d, 0, n, o->rel + i * o->rel_ld, o->n_rel, o->shift - i);
        for (int j = 0; j < n; j += VL)
            sum = vfma(vld_upto(p + j, n - j, v0()), vld_upto(d + j, n - j, v0()), sum);
        const vf delta = v1(vsum(sum));
        for (int j = 0; j < n; j += VL) {
            const vf t = vsub(vld_upto(d + j, n - j, v0()), delta);
            vst_upto(d + j, n - j, vmul(vld_upto(p + j, n - j, v0()), t));
        }
    }
}

static void softmax_grad(const struct softmax_grad *o)
{
    each_row(softmax_grad_rows, o, o->rows, o->cols, o->threads);
}

/* ---- norm --------------------------------------------------------------------------------- */

/* stats: the mean, what its rounding left over, and 1/sqrt(var + eps); see norm in rows.inc.c. */
static void norm_stats_rows(const void *arg, int first, int last)
{
    const struct norm_grad *o = arg;
    const int n = o->n;

    for (int i = first; i < last; i++) {
        const float *x = o->x + (ptrdiff_t)i * n;
        float *stats = o->stats + (ptrdiff_t)NORM_STATS * i;
        vf sum = v0(), d1 = v0(), d2 = v0();

        for (int j = 0; j < n; j += VL)
            sum = vadd(sum, vld_upto(x + j, n - j, v0()));
        const float mean = vsum(sum) / (float)n;
        for (int j = 0; j < n; j += VL) {
            const vf d = vsub(vld_upto(x + j, n - j, v1(mean)), v1(mean));
            d1 = vadd(d1, d);
            d2 = vfma(d, d, d2);
        }
        const float rest = vsum(d1) / (float)n;
        stats[0] = mean;
        stats[1] = rest;
        stats[2] = 1.0f / sqrtf(vsum(d2) / (float)n - rest * rest + o->eps);
    }
}

VEC_INLINE vf normalised(const float *x, int left, const float *stats)
{
    const vf d = vsub(vsub(vld_upto(x, left, v0()), v1(stats[0])), v1(stats[1]));
    return vmul(d, v1(stats[2]));
}

static void norm_grad_columns(const void *arg, int i0, int i1, int j0, int j1)
{
    const struct norm_grad *o = arg;

    for (int j = j0; j < j1; j += VL) {
        const int left = o->n - j;
        vf weight = v0(), bias = v0();
        for (int i = i0; i < i1; i++) {
            const ptrdiff_t at = (ptrdiff_t)i * o->n + j;
            const vf d_y = vld_upto(o->d_y + at, left, v0());
            weight = vfma(d_y, normalised(o->x + at, left, o->stats + NORM_STATS * i), weight);
            bias = vadd(bias, d_y);
        }
        if (o->d_weight)
            add_upto(o->d_weight + j, left, weight);
        if (o->d_bias)
            add_upto(o->d_bias + j, left, bias);
    }
}

/* dx = r (t - mean(t) - xhat mean(t xhat)), t = dy weight */
static void norm_grad_rows(const void *arg, int first, int last)
{
    const struct norm_grad *o = arg;
    const int n = o->n;

    for (int i = first; i < last; i++) {
        const ptrdiff_t at = (ptrdiff_t)i * n;
        const float *x = o->x + at, *d_y = o->d_y + at, *stats = o->stats + NORM_STATS * i;
        vf sum_t = v0(), sum_tx = v0();

        for (int j = 0; j < n; j += VL) {
            const int left = n - j;
            const vf t = vmul(vld_upto(d_y + j, left, v0()), vld_upto(o->weight + j, left, v0()));
            sum_t = vadd(sum_t, t);
            sum_tx = vfma(t, normalised(x + j, left, stats), sum_tx);
        }
        const vf mean_t = v1(vsum(sum_t) / (float)n), mean_tx = v1(vsum(sum_tx) / (float)n);
        for (int j = 0; j < n; j += VL) {
            const int left = n - j;
            const vf t = vmul(vld_upto(d_y + j, left, v0()), vld_upto(o->weight + j, left, v0()));
            const vf d = vfnma(normalised(x + j, left, stats), mean_tx, vsub(t, mean_t));
            vst_upto(o->d_x + at + j, left, vmul(d, v1(stats[2])));
        }
    }
}

/* Rows last: d_x may lie where x or d_y lies. */
static void norm_grad(const struct norm_grad *o)
{
    each_row(norm_stats_rows, o, o->rows, o->n, o->threads);
    if (o->d_weight || o->d_bias)
        each_column(norm_grad_columns, o, o->rows, o->n, o->threads);
    if (o->d_x)
        each_row(norm_grad_rows, o, o->rows, o->n, o->threads);
}

/* ---- act ---------------------------------------------------------------------------------- */

static void act_grad_columns(const void *arg, int i0, int i1, int j0, int j1)
{
    const struct act_grad *o = arg;

    for (int j = j0; j < j1; j += VL) {
        const int left = o->n - j;
        vf bias = v0();
        for (int i = i0; i < i1; i++) {
            const ptrdiff_t at = (ptrdiff_t)i * o->n + j;
            vf d = vld_upto(o->d_y + at, left, v0());
            if (o->kind == ACT_RELU)
                d = vsel_lt(v0(), vld_upto(o->y + at, left, v0()), d, v0());
            if (o->d_x)
                vst_upto(o->d_x + at, left, d);
            bias = vadd(bias, d);
        }
        if (o->d_bias)
            add_upto(o->d_bias + j, left, bias);
    }
}

static void act_grad(const struct act_grad *o)
{
    each_column(act_grad_columns, o, o->rows, o->n, o->threads);
}

/* ---- gate --------------------------------------------------------------------------------- */

struct gate_lanes {
    vf x, y, a, c, b; /* gradients; b is what d_b receives */
};

/* Column j: `at` is the element of x, y and d_out, `pre` that of a and c. */
VEC_INLINE struct gate_lanes gate_grad_lanes(const struct gate_grad *o, ptrdiff_t at, ptrdiff_t pre,
                                             int j)
{
    const int left = o->n - j;
    const vf zero = v0(), one = v1(1.0f), a = vld_upto(o->a + pre, left, zero);
    const vf g = vld_upto(o->d_out + at, left, zero),
             b = o->b ? vld_upto(o->b + j, left, zero) : zero;
    const vf x = o->x ? vld_upto(o->x + at, left, zero) : zero;
    const vf y = o->y ? vld_upto(o->y + at, left, zero) : zero;
    const vf c = o->c ? vtanh(vld_upto(o->c + pre, left, zero)) : zero;
    const vf logit = o->kind == GATE_HIGHWAY ? vadd(a, b) : vsub(a, b);
    const vf t = vlogistic(logit);
    const vf rest = vlogistic(vsub(zero, logit)); /* 1 - t without cancelling */
    const vf gt = vmul(g, t), slope = vmul(gt, rest), dc = vmul(gt, vfnma(c, c, one));
    struct gate_lanes d = {.x = g, .y = zero, .a = zero, .c = zero, .b = zero};

    switch (o->kind) {
    case GATE_INPUT:
        d.x = gt;
        d.y = g;
        d.a = vmul(slope, x);
        break;
    case GATE_OUTPUT:
        d.y = gt;
        d.a = vmul(slope, y);
        d.b = vsub(zero, d.a);
        break;
    case GATE_HIGHWAY:
        d.x = gt;
        d.y = vmul(g, rest);
        d.a = d.b = vmul(slope, vsub(x, y));
        break;
    case GATE_SIGTANH:
        d.a = vmul(slope, c);
        d.c = dc;
        d.b = vsub(zero, d.a);
        break;
    case GATE_RESET:
        d.x = gt;
        d.a = vmul(slope, x);
        break;
    case GATE_UPDATE:
        d.x = vmul(g, rest);
        d.a = vmul(slope, vsub(c, x));
        d.c = dc;
        d.b = vsub(zero, d.a);
        break;
    }
    return d;
}

static void gate_grad_columns(const void *arg, int i0, int i1, int j0, int j1)
{
    const struct gate_grad *o = arg;

    for (int j = j0; j < j1; j += VL) {
        const int left = o->n - j;
        vf bias = v0();
        for (int i = i0; i < i1; i++) {
            const ptrdiff_t at = (ptrdiff_t)i * o->n + j, pre = i * o->ld + j;
            const struct gate_lanes d = gate_grad_lanes(o, at, pre, j);
            bias = vadd(bias, d.b);
            if (o->d_x)
                vst_upto(o->d_x + at, left, d.x);
            if (o->d_y)
                vst_upto(o->d_y + at, left, d.y);
            if (o->d_a)
                vst_upto(o->d_a + pre, left, d.a);
            if (o->d_c)
                vst_upto(o->d_c + pre, left, d.c);
        }
        if (o->d_b)
            add_upto(o->d_b + j, left, bias);
    }
}

static void gate_grad(const struct gate_grad *o)
{
    each_column(gate_grad_columns, o, o->rows, o->n, o->threads);
}

/* ---- nll ---------------------------------------------------------------------------------- */

static void nll_grad_rows(const void *arg, int first, int last)
{
    const struct nll_grad *o = arg;
    const int n = o->n;

    for (int i = first; i < last; i++) {
        const float *x = o->logits + (ptrdiff_t)i * n;
        float *d = o->d_logits + (ptrdiff_t)i * n;
        const vf m = v1(row_max(x, n));
        vf sum = v0();

        for (int j = 0; j < n; j += VL) {
            const vf e = vexp(vsub(vld_upto(x + j, n - j, v1(-INFINITY)), m));
            vst_upto(d + j, n - j, e);
            sum = vadd(sum, e);
        }
        const vf scale = v1(o->scale / vsum(sum));
        for (int j = 0; j < n; j += VL)
            vst_upto(d + j, n - j, vmul(vld_upto(d + j, n - j, v0()), scale));
        d[o->target[i]] -= o->scale;
    }
}

static void nll_grad(const struct nll_grad *o)
{
    each_row(nll_grad_rows, o, o->rows, o->n, o->threads);
}

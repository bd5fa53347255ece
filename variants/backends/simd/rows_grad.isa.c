/* SPDX-License-Identifier: MIT
 *
 * Gradients of softmax, norm and nll, with the vectors of vec.h. */
#include "rows_shared.h"
#include "simd.h"

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

void AT_ISA(softmax_grad)(const struct softmax_grad *o)
{
    each_row(softmax_grad_rows, o, o->rows, o->cols, o->threads);
}

/* ---- norm --------------------------------------------------------------------------------- */

/* stats of a row: the mean, its rounding error, 1/root (0, 0 and the factor if nothing is
 * subtracted), and PULL, the divisor of xhat (t . xhat) in the gradient; see norm in rows.isa.c and
 * struct normal in rows_grad.c. */
enum { MEAN, REST, FACTOR, PULL };
_Static_assert(PULL + 1 == NORM_STATS, "one entry each");

static void centred_stats(const struct norm_grad *o, const float *x, float *stats)
{
    const int n = o->n;
    vf sum = v0(), d1 = v0(), d2 = v0();

    for (int j = 0; j < n; j += VL)
        sum = vadd(sum, vld_upto(x + j, n - j, v0()));
    const float mean = vsum(sum) / (float)n;
    for (int j = 0; j < n; j += VL) {
        const vf d = vsub(vld_upto(x + j, n - j, v1(mean)), v1(mean));
        d1 = vadd(d1, d);
        d2 = vfma(d, d, d2);
    }
    const float rest = vsum(d1) / (float)n, variance = vsum(d2) / (float)n - rest * rest;
    stats[MEAN] = mean;
    stats[REST] = rest;
    stats[FACTOR] = centred_factor(o->kind, variance, n, o->eps);
    stats[PULL] = (float)n;
    if (o->kind == NORM_UNBIASED) { /* s (n-1) / (s + eps), infinite for a constant row */
        const float s = sqrtf(variance * ((float)n / (float)(n - 1)));
        stats[PULL] = s > 0.0f ? s * (float)(n - 1) * stats[FACTOR] : INFINITY;
    }
}

static void length_stats(const struct norm_grad *o, const float *x, float *stats)
{
    vf sum = v0();

    for (int j = 0; j < o->n; j += VL) {
        const vf t = vld_upto(x + j, o->n - j, v0());
        sum = vfma(t, t, sum);
    }
    const float squares = vsum(sum);
    stats[MEAN] = stats[REST] = 0.0f;
    stats[FACTOR] = length_factor(o->kind, squares, o->n, o->eps);
    stats[PULL] = (float)o->n;
    if (o->kind == NORM_SCALE) /* a row shorter than eps is divided by a constant */
        stats[PULL] = sqrtf(squares) > o->eps ? 1.0f : INFINITY;
}

static void norm_stats_rows(const void *arg, int first, int last)
{
    const struct norm_grad *o = arg;
    const bool centred = o->kind == NORM_LAYER || o->kind == NORM_UNBIASED;

    for (int i = first; i < last; i++) {
        const float *x = o->x + (ptrdiff_t)i * o->n;
        float *stats = o->stats + (ptrdiff_t)NORM_STATS * i;
        if (centred)
            centred_stats(o, x, stats);
        else
            length_stats(o, x, stats);
    }
}

VEC_INLINE vf normalised(const float *x, int left, const float *stats)
{
    const vf d = vsub(vsub(vld_upto(x, left, v0()), v1(stats[MEAN])), v1(stats[REST]));
    return vmul(d, v1(stats[FACTOR]));
}

/* The rows of one head are every `step`-th. */
VEC_INLINE void norm_grad_head(const struct norm_grad *o, int head, int first, int i1, int step,
                               int j0, int j1)
{
    for (int j = j0; j < j1; j += VL) {
        const int left = o->n - j;
        const ptrdiff_t to = (ptrdiff_t)head * o->n + j;
        vf weight = v0(), bias = v0();
        for (int i = first; i < i1; i += step) {
            const ptrdiff_t at = (ptrdiff_t)i * o->n + j;
            const vf d_y = vld_upto(o->d_y + at, left, v0());
            weight = vfma(d_y, normalised(o->x + at, left, o->stats + NORM_STATS * i), weight);
            bias = vadd(bias, d_y);
        }
        if (o->d_weight)
            add_upto(o->d_weight + to, left, weight);
        if (o->d_bias)
            add_upto(o->d_bias + to, left, bias);
    }
}

static void norm_grad_columns(const void *arg, int i0, int i1, int j0, int j1)
{
    const struct norm_grad *o = arg;
    const int heads = max_int(1, o->heads);

    for (int i = i0; i < min_int(i0 + heads, i1); i++)
        norm_grad_head(o, i % heads, i, i1, heads, j0, j1);
}

/* The one weight of SCALE: each row's part first, stored in MEAN's place, then their sum. */
static void norm_share_rows(const void *arg, int first, int last)
{
    const struct norm_grad *o = arg;

    for (int i = first; i < last; i++) {
        const ptrdiff_t at = (ptrdiff_t)i * o->n;
        vf sum = v0();
        for (int j = 0; j < o->n; j += VL)
            sum = vfma(vld_upto(o->d_y + at + j, o->n - j, v0()),
                       vld_upto(o->x + at + j, o->n - j, v0()), sum);
        o->stats[(ptrdiff_t)NORM_STATS * i] =
            vsum(sum) * o->stats[(ptrdiff_t)NORM_STATS * i + FACTOR];
    }
}

static void norm_grad_scale(const struct norm_grad *o)
{
    float sum = 0.0f;

    each_row(norm_share_rows, o, o->rows, o->n, o->threads);
    for (int i = 0; i < o->rows; i++) {
        sum += o->stats[(ptrdiff_t)NORM_STATS * i];
        o->stats[(ptrdiff_t)NORM_STATS * i] = 0.0f;
    }
    *o->d_weight += sum;
}

/* dx = r (t - mean(t) - xhat (t . xhat) / pull), t = dy weight; without mean(t) if x is not
 * centred. `kind` is a compile-time constant. */
VEC_INLINE void norm_grad_rows_as(enum norm_kind kind, const struct norm_grad *o, int first,
                                  int last)
{
    const bool centred = kind == NORM_LAYER || kind == NORM_UNBIASED;
    const vf one = kind == NORM_SCALE ? v1(*o->weight) : v0();
    const bool adaptive = centred && o->ada_c != 0;
    const int n = o->n;

    for (int i = first; i < last; i++) {
        const ptrdiff_t at = (ptrdiff_t)i * n;
        const float *x = o->x + at, *d_y = o->d_y + at, *stats = o->stats + NORM_STATS * i;
        const float *weight = adaptive ? NULL : o->weight + norm_weights_at(o->heads, n, i);
        vf sum_t = v0(), sum_tx = v0();

        for (int j = 0; j < n; j += VL) {
            const int left = n - j;
            const vf xhat = normalised(x + j, left, stats);
            const vf w = kind == NORM_SCALE ? one
                         : adaptive         ? ada_weight(o->ada_c, o->ada_k, xhat)
                                            : vld_upto(weight + j, left, v0());
            const vf t = vmul(vld_upto(d_y + j, left, v0()), w);
            if (centred)
                sum_t = vadd(sum_t, t);
            sum_tx = vfma(t, xhat, sum_tx);
        }
        const vf mean_t = v1(centred ? vsum(sum_t) / (float)n : 0.0f);
        const vf pulled = v1(vsum(sum_tx) / stats[PULL]);
        for (int j = 0; j < n; j += VL) {
            const int left = n - j;
            const vf xhat = normalised(x + j, left, stats);
            const vf w = kind == NORM_SCALE ? one
                         : adaptive         ? ada_weight(o->ada_c, o->ada_k, xhat)
                                            : vld_upto(weight + j, left, v0());
            vf t = vmul(vld_upto(d_y + j, left, v0()), w);
            if (centred)
                t = vsub(t, mean_t);
            const vf d = vfnma(xhat, pulled, t);
            vst_upto(o->d_x + at + j, left, vmul(d, v1(stats[FACTOR])));
        }
    }
}

static void norm_grad_rows(const void *arg, int first, int last)
{
    const struct norm_grad *o = arg;

    if (o->kind == NORM_SCALE)
        norm_grad_rows_as(NORM_SCALE, o, first, last);
    else if (o->kind == NORM_RMS)
        norm_grad_rows_as(NORM_RMS, o, first, last);
    else
        norm_grad_rows_as(NORM_LAYER, o, first, last); /* UNBIASED differs only in the stats */
}

/* Rows come last, because d_x may alias x or d_y. */
void AT_ISA(norm_grad)(const struct norm_grad *o)
{
    each_row(norm_stats_rows, o, o->rows, o->n, o->threads);
    if (o->kind == NORM_SCALE && o->d_weight)
        norm_grad_scale(o);
    else if (o->kind != NORM_SCALE && (o->d_weight || o->d_bias))
        each_column(norm_grad_columns, o, o->rows, o->n, o->threads);
    if (o->d_x)
        each_row(norm_grad_rows, o, o->rows, o->n, o->threads);
}

/* ---- nll ---------------------------------------------------------------------------------- */

static void nll_grad_rows(const void *arg, int first, int last)
{
    const struct nll_grad *o = arg;
    const int n = o->n;

    for (int i = first; i < last; i++) {
        const float *x = o->logits + (ptrdiff_t)i * n;
        float *d = o->d_logits + (ptrdiff_t)i * n;
        const float max = row_max(x, n);
        const vf m = v1(max);
        vf sum = v0();

        for (int j = 0; j < n; j += VL) {
            const vf e = vexp(vsub(vld_upto(x + j, n - j, v1(-INFINITY)), m));
            vst_upto(d + j, n - j, e);
            sum = vadd(sum, e);
        }
        const float total = vsum(sum);
        const float weight = o->z != 0 ? 1 + 2 * o->z * (max + logf(total)) : 1;
        const vf scale = v1(weight * o->scale / total);
        for (int j = 0; j < n; j += VL)
            vst_upto(d + j, n - j, vmul(vld_upto(d + j, n - j, v0()), scale));
        d[o->target[i]] -= o->scale;
    }
}

void AT_ISA(nll_grad)(const struct nll_grad *o)
{
    each_row(nll_grad_rows, o, o->rows, o->n, o->threads);
}

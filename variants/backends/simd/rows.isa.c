/* SPDX-License-Identifier: MIT
 *
 * Row operations with the vectors of vec.h: softmax, norm, act, glu, gate, nll. Rows are
 * independent; they are divided among threads in chunks if there is enough work. */
#include "lanes.h"
#include "rows_shared.h"
#include "simd.h"

/* ---- softmax ------------------------------------------------------------------------------ */

/* s[0..n) = e^(s - m); returns the sum. */
static float exp_row(float *s, int n, float m)
{
    vf sum = v0();

    for (int j = 0; j < n; j += VL) {
        const vf e = vexp(vsub(vld_upto(s + j, n - j, v1(-INFINITY)), v1(m)));
        vst_upto(s + j, n - j, e);
        sum = vadd(sum, e);
    }
    return vsum(sum);
}

static void scale_row(float *s, int n, float c)
{
    for (int j = 0; j < n; j += VL)
        vst_upto(s + j, n - j, vmul(vld_upto(s + j, n - j, v0()), v1(c)));
}

static void zero_row(float *s, int n)
{
    for (int j = 0; j < n; j += VL)
        vst_upto(s + j, n - j, v0());
}

static void softmax_rows(const void *arg, int first, int last)
{
    const struct softmax *o = arg;

    for (int i = first; i < last; i++) {
        float *s = o->s + i * o->ld;
        const int lo = clamp_int(o->lo + i * o->lo_slope, 0, o->cols);
        const int hi = clamp_int(o->hi + i * o->hi_slope, lo, o->cols);

        if (o->rel)
            add_relative(s, lo, hi, o->rel + i * o->rel_ld, o->n_rel, o->shift - i);
        if (o->bias)
            add_relative(s, lo, hi, o->bias, o->n_rel, o->shift - i);
        float m = row_max(s + lo, hi - lo);
        if (m == -INFINITY) /* nothing visible: every e^s is 0; avoids -inf - -inf */
            m = 0.0f;
        const float sum = exp_row(s + lo, hi - lo, m);

        scale_row(s + lo, hi - lo, sum == 0.0f ? 0.0f : 1.0f / sum);
        zero_row(s, lo);
        zero_row(s + hi, o->cols - hi);
        if (o->lse)
            o->lse[i] = sum == 0.0f ? -INFINITY : m + logf(sum);
    }
}

void AT_ISA(softmax)(const struct softmax *o)
{
    each_row(softmax_rows, o, o->rows, o->cols, o->threads);
}

/* ---- norm --------------------------------------------------------------------------------- */

/* y = x + add; returns the sum, or that of the squares. */
VEC_INLINE float sum_row(float *y, const float *x, const float *add, int n, bool squares)
{
    vf sum = v0();

    for (int j = 0; j < n; j += VL) {
        vf t = vld_upto(x + j, n - j, v0());
        if (add)
            t = vadd(t, vld_upto(add + j, n - j, v0()));
        vst_upto(y + j, n - j, t);
        sum = squares ? vfma(t, t, sum) : vadd(sum, t);
    }
    return vsum(sum);
}

/* Sum and sum of squares of y - mean. */
static void deviations(const float *y, int n, float mean, float *sum, float *squares)
{
    vf d1 = v0(), d2 = v0();

    for (int j = 0; j < n; j += VL) {
        const vf d = vsub(vld_upto(y + j, n - j, v1(mean)), v1(mean));
        d1 = vadd(d1, d);
        d2 = vfma(d, d, d2);
    }
    *sum = vsum(d1);
    *squares = vsum(d2);
}

/* Two passes; the second corrects the first: `rest`, the error of the rounded mean, is taken out of
 * the variance and subtracted separately, so a large common offset costs no accuracy. */
static void centred_row(const struct norm *o, int i)
{
    const int n = o->n;
    const bool adaptive = o->ada_c != 0;
    const ptrdiff_t at = (ptrdiff_t)i * n, head = norm_weights_at(o->heads, n, i);
    float *y = o->y + at;
    float rest, squares;
    const float mean = sum_row(y, o->x + at, o->add ? o->add + at : NULL, n, false) / (float)n;

    deviations(y, n, mean, &rest, &squares);
    rest /= (float)n;
    const float r = centred_factor(o->kind, squares / (float)n - rest * rest, n, o->eps);
    for (int j = 0; j < n; j += VL) {
        const int left = n - j;
        const vf d = vsub(vsub(vld_upto(y + j, left, v0()), v1(mean)), v1(rest));
        const vf xhat = vmul(d, v1(r));
        const vf w = adaptive ? ada_weight(o->ada_c, o->ada_k, xhat)
                              : vld_upto(o->weight + head + j, left, v0());
        const vf b = o->bias ? vld_upto(o->bias + head + j, left, v0()) : v0();
        vst_upto(y + j, left, vfma(xhat, w, b));
    }
}

static void rms_row(const struct norm *o, int i)
{
    const int n = o->n;
    const ptrdiff_t at = (ptrdiff_t)i * n, head = norm_weights_at(o->heads, n, i);
    float *y = o->y + at;
    const float squares = sum_row(y, o->x + at, o->add ? o->add + at : NULL, n, true);
    const vf r = v1(length_factor(o->kind, squares, n, o->eps));

    for (int j = 0; j < n; j += VL) {
        const int left = n - j;
        const vf w = vld_upto(o->weight + head + j, left, v0());
        const vf b = o->bias ? vld_upto(o->bias + head + j, left, v0()) : v0();
        vst_upto(y + j, left, vfma(vmul(vld_upto(y + j, left, v0()), r), w, b));
    }
}

static void scaled_row(const struct norm *o, int i)
{
    const ptrdiff_t at = (ptrdiff_t)i * o->n;
    const float squares = sum_row(o->y + at, o->x + at, o->add ? o->add + at : NULL, o->n, true);

    scale_row(o->y + at, o->n, *o->weight * length_factor(o->kind, squares, o->n, o->eps));
}

static void norm_rows(const void *arg, int first, int last)
{
    const struct norm *o = arg;

    for (int i = first; i < last; i++) {
        if (o->kind == NORM_RMS)
            rms_row(o, i);
        else if (o->kind == NORM_SCALE)
            scaled_row(o, i);
        else
            centred_row(o, i);
    }
}

void AT_ISA(norm)(const struct norm *o) { each_row(norm_rows, o, o->rows, o->n, o->threads); }

/* ---- act ---------------------------------------------------------------------------------- */

static void act_rows(const void *arg, int first, int last)
{
    const struct act *o = arg;

    act_part(o, first, last, 0, o->n);
}

void AT_ISA(act)(const struct act *o) { each_row(act_rows, o, o->rows, o->n, o->threads); }

/* ---- glu ---------------------------------------------------------------------------------- */

VEC_INLINE void glu_rows_as(enum act_kind kind, const struct glu *o, int first, int last)
{
    const vf beta = v1(glu_beta(o->beta));

    for (int i = first; i < last; i++)
        for (int j = 0; j < o->n; j += VL) {
            const int left = o->n - j;
            const ptrdiff_t at = i * o->ld + j;
            vf a = vld_upto(o->a + at, left, v0()), b = vld_upto(o->b + at, left, v0());
            if (o->a_bias)
                a = vadd(a, vld_upto(o->a_bias + j, left, v0()));
            if (o->b_bias)
                b = vadd(b, vld_upto(o->b_bias + j, left, v0()));
            a = act_value(kind, glu_gate(a, o->limit), beta);
            vst_upto(o->y + (ptrdiff_t)i * o->n + j, left, vmul(a, glu_other(b, o->limit)));
        }
}

static void glu_rows(const void *arg, int first, int last)
{
    const struct glu *o = arg;

    ACT_SWITCH(o->kind, glu_rows_as, o, first, last)
}

void AT_ISA(glu)(const struct glu *o) { each_row(glu_rows, o, o->rows, o->n, o->threads); }

/* ---- gate --------------------------------------------------------------------------------- */

static void gate_rows(const void *arg, int first, int last)
{
    const struct gate_op *o = arg;

    gate_part(o, first, last, 0, o->n);
}

void AT_ISA(gate)(const struct gate_op *o) { each_row(gate_rows, o, o->rows, o->n, o->threads); }

/* ---- nll ---------------------------------------------------------------------------------- */

static void nll_rows(const void *arg, int first, int last)
{
    const struct nll_op *o = arg;

    for (int i = first; i < last; i++) {
        const float *x = o->logits + (ptrdiff_t)i * o->n;
        const float m = row_max(x, o->n);
        vf sum = v0();

        for (int j = 0; j < o->n; j += VL)
            sum = vadd(sum, vexp(vsub(vld_upto(x + j, o->n - j, v1(-INFINITY)), v1(m))));
        o->nll[i] = m - x[o->target[i]] + logf(vsum(sum)); /* the large terms cancel first */
    }
}

void AT_ISA(nll)(const struct nll_op *o) { each_row(nll_rows, o, o->rows, o->n, o->threads); }

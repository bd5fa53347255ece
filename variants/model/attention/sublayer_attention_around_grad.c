/* SPDX-License-Identifier: MIT
 *
 * Around the core of attention, backward: sublayer_attention_around.c in reverse order. */
#include "sublayer_attention_around.h"
#include "variants/base/loops.h"
#include "variants/model/sublayer/sublayer_inner.h"
#include "variants/parts/linear.h"

#include <math.h>
#include <string.h>

static struct around_work gradients(const struct sublayer *s, const struct work *w,
                                    struct around_call n)
{
    return around_work_of(s, w->d_own[AT_AROUND], n, true);
}

static void norm_grad(const struct engine *g, const struct sublayer *s, const struct param *weight,
                      float *d, const float *raw, float *stats, int rows)
{
    g->ops.norm_grad(&(struct norm_grad){.kind = NORM_RMS,
                                         .d_x = d,
                                         .d_weight = weight->grad,
                                         .d_y = d,
                                         .x = raw,
                                         .weight = weight->data,
                                         .stats = stats,
                                         .rows = rows,
                                         .n = weight->shape[0],
                                         .eps = s->c->head_eps,
                                         .threads = g->threads});
}

/* do = d (.) s, d(W_g x) = d (.) o (.) s (1 - s), summed where heads share a gate. */
static void gate_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                      struct around_call n, float *d_o)
{
    const struct config *const c = s->c;
    const struct param *const W = around_param(s, AROUND_G);
    const struct around_work x = around_work_of(s, w->own[AT_AROUND], n, false),
                             d = gradients(s, w, n);
    const ptrdiff_t width = W->shape[0], each = config_q_width(c) / width;
    const ptrdiff_t rows = (ptrdiff_t)n.B * n.L;
    const float *const o = w->own[AT_O];
#pragma omp parallel for num_threads(team_for(g->threads, rows *width *each))
    for (ptrdiff_t y = 0; y < rows * width; y++) {
        float sum = 0;
        for (ptrdiff_t e = y * each; e < (y + 1) * each; e++) {
            sum += d_o[e] * o[e];
            d_o[e] *= x.gate[y];
        }
        d.gate[y] = sum * x.gate[y] * (1 - x.gate[y]);
    }
}

/* d lambda reaches the vectors through the two exponentials. */
static void lambda_grad(const struct sublayer *s, double d, const double part[2])
{
    for (int map = 0; map < 2; map++) {
        const struct param *const q = around_param(s, AROUND_LAMBDA_Q1 + 2 * (unsigned)map);
        const struct param *const k = around_param(s, AROUND_LAMBDA_K1 + 2 * (unsigned)map);
        const double x = (map ? -d : d) * part[map];
        for (int e = 0; e < s->c->dh; e++) {
            q->grad[e] += (float)(x * (double)k->data[e]);
            k->grad[e] += (float)(x * (double)q->data[e]);
        }
    }
}

/* do_1 in place of d_o, do_2 = -lambda do_1. */
static void difference_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                            struct around_call n, float *d_o)
{
    const struct config *const c = s->c;
    const ptrdiff_t all = (ptrdiff_t)n.B * n.L * config_q_width(c);
    const struct around_work x = around_work_of(s, w->own[AT_AROUND], n, false);
    const struct around_work d = gradients(s, w, n);
    const struct param *const weight = around_param(s, AROUND_DIFF_NORM);
    double part[2];
    const float lambda = around_lambda(s, part), rest = (float)(1 - around_lambda_init(s));

#pragma omp parallel for simd num_threads(team_for(g->threads, all))
    for (ptrdiff_t e = 0; e < all; e++)
        d_o[e] *= rest;
    norm_grad(g, s, weight, d_o, x.mixed, d.stats, n.B * n.L * c->H);
    lambda_grad(s, -dot_in_order(d_o, x.o[1], all), part);
#pragma omp parallel for simd num_threads(team_for(g->threads, all))
    for (ptrdiff_t e = 0; e < all; e++)
        d.o[1][e] = -lambda * d_o[e];
}

void around_output_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                        struct around_call n, float *d_o)
{
    if (s->c->around.out_gate != OUT_GATE_NONE)
        gate_grad(g, s, w, n, d_o);
    if (s->c->around.diff)
        difference_grad(g, s, w, n, d_o);
}

struct attn_grad around_map_grad(const struct sublayer *s, const struct work *w,
                                 struct around_call n, const struct attn_grad *d, int map)
{
    const struct around_work x = gradients(s, w, n);
    struct attn_grad one = *d;

    if (map == 0)
        return one;
    one.d_o = x.o[1];
    one.d_q += s->c->H * s->c->dh;
    one.d_k += s->c->kv_heads * s->c->dh;
    one.d_v = x.d_v;
    return one;
}

void around_scores_grad(const struct sublayer *s, const struct work *w, struct around_call n,
                        struct attn_grad *d)
{
    if (s->c->around.forget) {
        d->d_fade = gradients(s, w, n).sums_f;
        memset(d->d_fade, 0, sizeof(double) * around_sums_count(s->c, n));
    }
    if (!around_adds(s->c) || (s->c->around.predict.form && !predicts(s)) || predicts_twice(s))
        return;
    d->d_add = gradients(s, w, n).add;
    memset(d->d_add, 0, sizeof(float) * around_add_floats(s->c, n));
}

/* dlog f_t = sum of d_fade_j over j >= t;  dy = dlog f sigma(-y) */
static void fade_grad(const struct sublayer *s, const struct around_work *x,
                      const struct around_work *d, struct around_call n)
{
    const int H = s->c->H;

    CHECK(n.all == n.K);
    for (int b = 0; b < n.B; b++)
        for (int h = 0; h < H; h++) {
            const double *const sums = d->sums_f + ((ptrdiff_t)b * H + h) * n.all;
            double sum = 0;
            for (int t = n.all - 1; t >= 0; t--) {
                const ptrdiff_t at = ((ptrdiff_t)b * n.K + t) * H + h;
                sum += sums[t];
                d->fade[at] = (float)(sum / (1 + exp((double)x->fade[at])));
            }
        }
}

/* d_v of the mixed values becomes that of this layer's; the first attention's collects its share.
 */
static void values_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                        struct around_call n, float *d_v)
{
    const ptrdiff_t all = (ptrdiff_t)n.B * n.K * config_kv_width(s->c);
    float *const d_first = w->d_own[AT_V0];

    if (!w->above || s->bare) /* nothing has arrived yet */
        memset(d_first, 0, sizeof(float) * (size_t)all);
    if (!around_mixes_values(s)) {
#pragma omp parallel for simd num_threads(team_for(g->threads, all))
        for (ptrdiff_t e = 0; e < all; e++)
            d_v[e] += d_first[e];
        return;
    }
    const struct param *const mix = around_param(s, AROUND_V_MIX);
    const float m0 = mix->data[0], m1 = mix->data[1];
    mix->grad[0] +=
        (float)dot_in_order(d_v, around_work_of(s, w->own[AT_AROUND], n, false).raw_v, all);
    mix->grad[1] += (float)dot_in_order(d_v, w->own[AT_V0], all);
#pragma omp parallel for simd num_threads(team_for(g->threads, all))
    for (ptrdiff_t e = 0; e < all; e++) {
        d_first[e] += m1 * d_v[e];
        d_v[e] *= m0;
    }
}

void around_operands_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                          struct around_call n, struct attn_grad *d)
{
    const struct around *const a = &s->c->around;
    const struct around_work x = around_work_of(s, w->own[AT_AROUND], n, false),
                             to = gradients(s, w, n);

    if (a->diff) {
        const ptrdiff_t all = (ptrdiff_t)n.B * n.K * config_kv_width(s->c);
        for (ptrdiff_t e = 0; e < all; e++)
            d->d_v[e] += to.d_v[e];
    }
    if (a->qk_norm) {
        norm_grad(g, s, around_param(s, AROUND_Q_NORM), d->d_q, x.raw_q, to.stats,
                  n.B * n.L * config_maps(s->c) * s->c->H);
        norm_grad(g, s, around_param(s, AROUND_K_NORM), d->d_k, x.raw_k, to.stats,
                  n.B * n.K * config_maps(s->c) * s->c->kv_heads);
    }
    if (a->forget)
        fade_grad(s, &x, &to, n);
    if (a->value_residual)
        values_grad(g, s, w, n, d->d_v);
}

/* W of width W->shape[0] over rows [first, n.K) of every sequence. */
static void map_grad(const struct engine *g, const struct param *W, struct around_call n,
                     struct sublayer_input from, const float *d_y, float *d_in, int rows, int skip)
{
    const int in = W->shape[1], out = W->shape[0], past = n.K - rows;
    const struct seq_rows d = {(float *)d_y, (ptrdiff_t)rows * out};
    const struct seq_rows x = {from.at.at + (ptrdiff_t)past * in, from.at.stride};
    const int left = past < skip ? skip - past : 0; /* rows whose gradient is not wanted */
    const int row = past < skip ? 0 : past - skip;

    project_weight_grad(g, W, d, x, n.B, rows);
    project_input_grad(
        g, W, (struct seq_rows){d_in + (ptrdiff_t)row * in, (ptrdiff_t)(n.K - skip) * in},
        (struct seq_rows){d.at + (ptrdiff_t)left * out, d.stride}, n.B, rows - left, 1);
}

void around_input_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                       struct around_call n, struct sublayer_input from, float *d_in, int skip)
{
    const struct around_work d = gradients(s, w, n);

    if (s->c->around.forget) {
        linear_bias_grad(g, around_param(s, AROUND_F_BIAS), d.fade, n.B * n.K);
        map_grad(g, around_param(s, AROUND_F), n, from, d.fade, d_in, n.K, skip);
    }
    if (s->c->around.man) { /* a map to one number */
        struct param row = *around_param(s, AROUND_MAN_ROW);
        row.rank = 2;
        row.shape[1] = row.shape[0];
        row.shape[0] = 1;
        map_grad(g, &row, n, from, d.d_row, d_in, n.L, skip);
    }
    if (s->c->around.out_gate != OUT_GATE_NONE)
        map_grad(g, around_param(s, AROUND_G), n, from, d.gate, d_in, n.L, skip);
}

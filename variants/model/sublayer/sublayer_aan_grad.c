/* SPDX-License-Identifier: MIT
 *
 * Average attention backward: the gate, the feed-forward network and the sums of all rows so far,
 * whose gradients are sums over all later rows. */
#include "sublayer_aan.h"
#include "variants/parts/linear.h"

/* d_x_j += sum_{t >= j} d_mu_t / (count + t + 1) */
static void sum_backward(const struct engine *g, const struct sublayer *s, float *d_x,
                         const float *d_mu, int B, int L)
{
    const ptrdiff_t D = s->c->D;
    const double count = aan_counted(s);

#pragma omp parallel for num_threads(g->threads)
    for (ptrdiff_t column = 0; column < B * D; column++) {
        const ptrdiff_t at = column / D * L * D + column % D;
        double sum = 0;
        for (int i = L - 1; i >= 0; i--) {
            sum += (double)d_mu[at + i * D] / (count + i + 1);
            d_x[at + i * D] = (float)((double)d_x[at + i * D] + sum);
        }
    }
}

/* d_x and d_g of the blend, and the gradients of the gates before their sigma. */
static void blend_backward(const struct sublayer *s, const struct work *w, float *d_x,
                           const float *d_y, const float *x, int rows)
{
    const ptrdiff_t D = s->c->D;

    for (ptrdiff_t r = 0; r < rows; r++) {
        const float *sides = w->own[AAN_GATES] + 2 * r * D, *of_mean = w->own[AAN_G] + r * D;
        float *d_gates = w->d_own[AAN_GATES] + 2 * r * D;
        for (ptrdiff_t e = 0; e < D; e++) {
            const float i = sides[e], f = sides[D + e], d = d_y[r * D + e];
            d_x[r * D + e] = d * i;
            w->d_own[AAN_G][r * D + e] = d * f;
            d_gates[e] = d * x[r * D + e] * i * (1 - i);
            d_gates[D + e] = d * of_mean[e] * f * (1 - f);
        }
    }
}

/* Through one half of the gate's weight: dW += d_gates^T x, d_x += d_gates W. */
static void half_backward(const struct engine *g, const struct sublayer *s, const struct work *w,
                          float *d_x, const float *x, int rows, int half)
{
    const int D = s->c->D;
    const struct param *const gate = &s->own[AAN_GATE];

    mm(g, TN, 2 * D, D, rows, 1, w->d_own[AAN_GATES], 2 * D, x, D, 1, gate->grad + half * D, 2 * D);
    mm(g, NN, rows, D, 2 * D, 1, w->d_own[AAN_GATES], 2 * D, gate->data + half * D, 2 * D, 1, d_x,
       D);
}

static void ffn_backward(const struct engine *g, const struct sublayer *s, const struct work *w,
                         int rows)
{
    const struct param *const p = s->own;
    float *const d_hidden = w->d_own[AAN_HIDDEN];

    linear_weight_grad(g, &p[AAN_W2], w->d_own[AAN_G], w->own[AAN_HIDDEN], rows);
    linear_bias_grad(g, &p[AAN_B2], w->d_own[AAN_G], rows);
    linear_input_grad(g, &p[AAN_W2], d_hidden, w->d_own[AAN_G], rows, 0);
    g->ops.act_grad(&(struct act_grad){.kind = ACT_RELU,
                                       .d_x = d_hidden,
                                       .d_bias = p[AAN_B1].grad,
                                       .d_y = d_hidden,
                                       .x = w->own[AAN_HIDDEN],
                                       .rows = rows,
                                       .n = s->c->F,
                                       .threads = g->threads});
    linear_weight_grad(g, &p[AAN_W1], d_hidden, w->own[AAN_MU], rows);
    linear_input_grad(g, &p[AAN_W1], w->d_own[AAN_MU], d_hidden, rows, 0);
}

void aan_backward(const struct engine *g, struct sublayer *s, const struct work *w,
                  struct sublayer_input from, float *d_in, const float *d_y, int skip)
{
    const int rows = from.B * from.L;
    const float *x = from.at.at;

    CHECK(skip == 0);
    blend_backward(s, w, d_in, d_y, x, rows);
    linear_bias_grad(g, &s->own[AAN_GATE_BIAS], w->d_own[AAN_GATES], rows);
    half_backward(g, s, w, d_in, x, rows, 0);
    half_backward(g, s, w, w->d_own[AAN_G], w->own[AAN_G], rows, 1);
    ffn_backward(g, s, w, rows);
    sum_backward(g, s, d_in, w->d_own[AAN_MU], from.B, from.L);
}

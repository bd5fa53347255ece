/* SPDX-License-Identifier: MIT
 *
 * Position-wise feed-forward networks. */
#include "dropout.h"
#include "linear.h"
#include "parts.h"

enum { W1, B1, W2, B2 };

static void relu_params(const struct config *c, const char *prefix, struct params *p)
{
    params_matrix(p, c->F, c->D, prefix, "ff.1.weight");
    params_vector(p, INIT_ZERO, 0, c->F, prefix, "ff.1.bias");
    params_matrix(p, c->D, c->F, prefix, "ff.2.weight");
    params_vector(p, INIT_ZERO, 0, c->D, prefix, "ff.2.bias");
}

static double relu_flop(const struct config *c, int rows)
{
    return 4.0 * rows * c->D * c->F; /* two products */
}

/* FFN(x) = W_2 relu(W_1 x + b_1) + b_2 */
static void relu_forward(const struct engine *g, const struct config *c, const struct param *w,
                         float *y, const float *x, int rows, float *hidden, struct act leave,
                         const struct dropout *drop)
{
    linear_forward(g, &w[W1], &w[B1], hidden, x, rows, (struct act){.kind = ACT_RELU, .y = hidden});
    dropout(drop, DROP_HIDDEN, hidden, (size_t)rows * (size_t)c->F, g->threads);
    linear_forward(g, &w[W2], &w[B2], y, hidden, rows, leave);
}

static void relu_backward(const struct engine *g, const struct config *c, const struct param *w,
                          float *d_x, const float *d_y, const float *x, int rows,
                          const float *hidden, float *d_hidden, const struct dropout *drop)
{
    linear_weight_grad(g, &w[W2], d_y, hidden, rows);
    linear_bias_grad(g, &w[B2], d_y, rows);
    linear_input_grad(g, &w[W2], d_hidden, d_y, rows, 0);
    dropout(drop, DROP_HIDDEN, d_hidden, (size_t)rows * (size_t)c->F, g->threads);
    g->ops.act_grad(&(struct act_grad){.kind = ACT_RELU,
                                       .d_x = d_hidden,
                                       .d_bias = w[B1].grad,
                                       .d_y = d_hidden,
                                       .y = hidden,
                                       .rows = rows,
                                       .n = c->F,
                                       .threads = g->threads});
    linear_weight_grad(g, &w[W1], d_hidden, x, rows);
    linear_input_grad(g, &w[W1], d_x, d_hidden, rows, 0);
}

const struct ffn ffn_relu = {
    .name = "relu",
    .params = relu_params,
    .flop = relu_flop,
    .forward = relu_forward,
    .backward = relu_backward,
};

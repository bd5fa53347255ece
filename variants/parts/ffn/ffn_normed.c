/* SPDX-License-Identifier: MIT
 *
 * The feed-forward network with a layer norm of its hidden units, of the decoder of So et al. 2019
 * ("The Evolved Transformer", figure 3):
 *
 *   FFN(x) = W_2 LN(swish(W_1 x + b_1)) + b_2
 *
 * Dropped units are normalised with the others, as in the authors' program. */
#include "variants/parts/dropout.h"
#include "variants/parts/linear.h"
#include "variants/parts/norm.h"
#include "variants/parts/parts.h"

struct normed {
    const struct param *w1, *b1, *norm, *w2, *b2; /* biases may be NULL; norm: weight and bias */
};

static void normed_params(const struct config *c, const char *prefix, struct params *p)
{
    params_map(p, c->F, c->D, prefix, "1.weight");
    if (c->ffn_bias)
        params_vector(p, INIT_ZERO, 0, c->F, prefix, "1.bias");
    params_vector(p, INIT_ONE, 0, c->F, prefix, "ln.weight");
    params_vector(p, INIT_ZERO, 0, c->F, prefix, "ln.bias");
    params_residual(p, params_map(p, c->D, c->F, prefix, "2.weight"));
    if (c->ffn_bias)
        params_vector(p, INIT_ZERO, 0, c->D, prefix, "2.bias");
}

static struct normed normed_of(const struct config *c, const struct param *w)
{
    struct normed f = {.w1 = w++};

    f.b1 = c->ffn_bias ? w++ : NULL;
    f.norm = w;
    w += 2;
    f.w2 = w++;
    f.b2 = c->ffn_bias ? w : NULL;
    return f;
}

static double normed_flop(const struct config *c, int rows) { return 4.0 * rows * c->D * c->F; }

static size_t units(const struct config *c, int rows) { return (size_t)rows * (size_t)c->F; }

/* Normed hidden units, these before the norm and, if kept for backward, before the activation. */
static size_t normed_work(const struct config *c, int rows, bool keep)
{
    return (keep ? 3 : 2) * units(c, rows);
}

/* The gradient of the hidden units, and statistics of the norm. */
static size_t normed_work_grad(const struct config *c, int rows)
{
    return units(c, rows) + NORM_STATS * (size_t)rows;
}

static void normed_forward(const struct engine *g, const struct config *c, const struct param *w,
                           float *y, const float *x, int rows, float *work, bool keep,
                           struct act epilogue, const struct dropout *drop)
{
    const struct normed f = normed_of(c, w);
    float *const normed = work, *const hidden = work + units(c, rows);
    float *const pre = keep ? hidden + units(c, rows) : hidden;

    linear_apply(g, f.w1, pre, x, rows);
    g->ops.act(&(struct act){.kind = ACT_SWISH,
                             .y = hidden,
                             .x = pre,
                             .bias = c->ffn_bias ? f.b1->data : NULL,
                             .rows = rows,
                             .n = c->F,
                             .threads = g->threads});
    dropout(drop, DROP_HIDDEN, hidden, units(c, rows), g->threads);
    layer_norm(g, f.norm, normed, hidden, rows, c->F, c->ln_eps);
    linear_forward(g, f.w2, f.b2, y, normed, rows, epilogue);
}

static void normed_backward(const struct engine *g, const struct config *c, const struct param *w,
                            float *d_x, const float *d_y, const float *x, int rows,
                            const float *work, float *grad_work, const struct dropout *drop)
{
    const struct normed f = normed_of(c, w);
    const float *const normed = work, *const hidden = work + units(c, rows);
    const float *const pre = hidden + units(c, rows);
    float *const d = grad_work;

    linear_backward(g, f.w2, c->ffn_bias ? f.b2 : NULL, d, d_y, normed, rows, 0);
    layer_norm_grad(g, f.norm, d, d, hidden, grad_work + units(c, rows), rows, c->F, c->ln_eps);
    dropout(drop, DROP_HIDDEN, d, units(c, rows), g->threads);
    g->ops.act_grad(&(struct act_grad){.kind = ACT_SWISH,
                                       .d_x = d,
                                       .d_bias = f.b1 ? f.b1->grad : NULL,
                                       .d_y = d,
                                       .x = pre,
                                       .bias = f.b1 ? f.b1->data : NULL,
                                       .rows = rows,
                                       .n = c->F,
                                       .threads = g->threads});
    linear_backward(g, f.w1, NULL, d_x, d, x, rows, 0);
}

const struct ffn ffn_swish_norm = {.name = "swish_norm",
                                   .act = ACT_SWISH,
                                   .params = normed_params,
                                   .flop = normed_flop,
                                   .work = normed_work,
                                   .work_grad = normed_work_grad,
                                   .forward = normed_forward,
                                   .backward = normed_backward};

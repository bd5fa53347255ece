/* SPDX-License-Identifier: MIT
 *
 * Position-wise feed-forward networks with one product before the activation:
 *
 *   FFN(x) = W_2 f(W_1 x + b_1) + b_2
 *
 * or, of the decoder of So et al. 2019 ("The Evolved Transformer", figure 3), with a layer norm of the
 * hidden units, W_2 LN(swish(W_1 x + b_1)) + b_2. Dropped units are normalised with the others, as in
 * the authors' program.
 *
 * Backward reads f's argument without the bias. For ReLU its output suffices, so only ReLU is fused
 * into the product in training too. */
#include "variants/parts/dropout.h"
#include "variants/parts/linear.h"
#include "variants/parts/norm.h"
#include "variants/parts/parts.h"

struct plain {
    const struct param *w1, *b1, *norm, *w2, *b2, *beta; /* all but w1 and w2 may be NULL */
};

/* swish's own: beta is trained, else it is 1. */
struct swish {
    bool beta;
};

static const struct choice swish_choices[] = {
    ROW_FLAG(struct swish, beta, "swish_beta", "1: beta is trained", .tensor = "ff.beta", SETTING),
    {0},
};

static const struct part_numbers swish_numbers = {swish_choices,
                                                  .size = NUMBERS_SIZE(struct swish)};

static bool has_beta(const struct config *c)
{
    const struct swish *const numbers = config_numbers(c, SLOT_FFN);

    return c->ffn->numbers == &swish_numbers && numbers->beta;
}

static bool has_norm(const struct config *c) { return c->ffn == &ffn_swish_norm; }

static void plain_params(const struct config *c, const char *prefix, struct params *p)
{
    params_map(p, c->F, c->D, prefix, "1.weight");
    if (c->ffn_bias)
        params_vector(p, INIT_ZERO, 0, c->F, prefix, "1.bias");
    if (has_norm(c)) {
        params_vector(p, INIT_ONE, 0, c->F, prefix, "ln.weight");
        params_vector(p, INIT_ZERO, 0, c->F, prefix, "ln.bias");
    }
    params_residual(p, params_map(p, c->D, c->F, prefix, "2.weight"));
    if (c->ffn_bias)
        params_vector(p, INIT_ZERO, 0, c->D, prefix, "2.bias");
    if (has_beta(c))
        params_vector(p, INIT_ONE, 0, 1, prefix, "beta");
}

static struct plain plain_of(const struct config *c, const struct param *w)
{
    struct plain f = {.w1 = w++};

    f.b1 = c->ffn_bias ? w++ : NULL;
    f.norm = has_norm(c) ? w : NULL;
    w += has_norm(c) ? 2 : 0;
    f.w2 = w++;
    f.b2 = c->ffn_bias ? w++ : NULL;
    f.beta = has_beta(c) ? w : NULL;
    return f;
}

static double plain_flop(const struct config *c, int rows)
{
    return 4.0 * rows * c->D * c->F; /* two products */
}

static size_t units(const struct config *c, int rows) { return (size_t)rows * (size_t)c->F; }

/* Normed hidden units if there is a norm, hidden units and, if kept for backward, their
 * pre-activations. */
static size_t plain_work(const struct config *c, int rows, bool keep)
{
    return (1 + has_norm(c) + (keep && c->ffn->act != ACT_RELU)) * units(c, rows);
}

/* The gradient of the hidden units, and column sums for that of beta or statistics of the norm. */
static size_t plain_work_grad(const struct config *c, int rows)
{
    return units(c, rows) + (has_beta(c) ? (size_t)c->F : 0) +
           (has_norm(c) ? NORM_STATS * (size_t)rows : 0);
}

static void plain_forward(const struct engine *g, const struct config *c, const struct param *w,
                          float *y, const float *x, int rows, float *work, bool keep,
                          struct act epilogue, const struct dropout *drop)
{
    const struct plain f = plain_of(c, w);
    const float *beta = f.beta ? f.beta->data : NULL;
    float *const hidden = work + (f.norm ? units(c, rows) : 0);

    if (keep && c->ffn->act != ACT_RELU) {
        float *pre = hidden + units(c, rows);
        linear_apply(g, f.w1, pre, x, rows);
        g->ops.act(&(struct act){.kind = c->ffn->act,
                                 .y = hidden,
                                 .x = pre,
                                 .bias = f.b1 ? f.b1->data : NULL,
                                 .beta = beta,
                                 .rows = rows,
                                 .n = c->F,
                                 .threads = g->threads});
    } else {
        linear_forward(g, f.w1, f.b1, hidden, x, rows,
                       (struct act){.kind = c->ffn->act, .y = hidden, .beta = beta});
    }
    dropout(drop, DROP_HIDDEN, hidden, units(c, rows), g->threads);
    if (f.norm)
        layer_norm(g, f.norm, work, hidden, rows, c->F, c->ln_eps);
    linear_forward(g, f.w2, f.b2, y, work, rows, epilogue);
}

static void plain_backward(const struct engine *g, const struct config *c, const struct param *w,
                           float *d_x, const float *d_y, const float *x, int rows,
                           const float *work, float *grad_work, const struct dropout *drop)
{
    const struct plain f = plain_of(c, w);
    const bool relu = c->ffn->act == ACT_RELU;
    const float *const hidden = work + (f.norm ? units(c, rows) : 0);
    float *d_hidden = grad_work;

    linear_backward(g, f.w2, f.b2, d_hidden, d_y, work, rows, 0);
    if (f.norm)
        layer_norm_grad(g, f.norm, d_hidden, d_hidden, hidden, grad_work + units(c, rows), rows,
                        c->F, c->ln_eps);
    dropout(drop, DROP_HIDDEN, d_hidden, units(c, rows), g->threads);
    g->ops.act_grad(&(struct act_grad){.kind = c->ffn->act,
                                       .d_x = d_hidden,
                                       .d_bias = f.b1 ? f.b1->grad : NULL,
                                       .d_beta = f.beta ? f.beta->grad : NULL,
                                       .sums = grad_work + units(c, rows),
                                       .d_y = d_hidden,
                                       .x = relu ? hidden : hidden + units(c, rows),
                                       .bias = f.b1 && !relu ? f.b1->data : NULL,
                                       .beta = f.beta ? f.beta->data : NULL,
                                       .rows = rows,
                                       .n = c->F,
                                       .threads = g->threads});
    linear_backward(g, f.w1, NULL, d_x, d_hidden, x, rows, 0);
}

#define PLAIN(kind)                                                                                \
    .act = (kind), .params = plain_params, .flop = plain_flop, .work = plain_work,                 \
    .work_grad = plain_work_grad, .forward = plain_forward, .backward = plain_backward

const struct ffn ffn_relu = {.name = "relu", PLAIN(ACT_RELU)};
const struct ffn ffn_gelu = {.name = "gelu", PLAIN(ACT_GELU)};
const struct ffn ffn_gelu_tanh = {.name = "gelu_tanh", PLAIN(ACT_GELU_TANH)};
const struct ffn ffn_swish = {.name = "swish", .numbers = &swish_numbers, PLAIN(ACT_SWISH)};
const struct ffn ffn_swish_norm = {.name = "swish_norm", PLAIN(ACT_SWISH)};

/* Layers without a feed-forward network: they have no such sub-layer (sublayer_params.c). */
const struct ffn ffn_none = {.name = "none", .no_hidden = true};

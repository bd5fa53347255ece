/* SPDX-License-Identifier: MIT
 *
 * Position-wise feed-forward networks, plain and gated (Shazeer 2020, "GLU Variants Improve
 * Transformer", arXiv:2002.05202):
 *
 *   FFN(x) = W_2 f(W_1 x + b_1) + b_2
 *   FFN(x) = W_2 (f(W_g x + b_g) (.) (W_1 x + b_1)) + b_2
 *
 * or, of the decoder of So et al. 2019 ("The Evolved Transformer", figure 3), with a layer norm of the
 * hidden units, W_2 LN(swish(W_1 x + b_1)) + b_2. Dropped units are normalised with the others, as in
 * the authors' program.
 *
 * Backward reads f's argument without the bias. For ReLU its output suffices, so only ReLU is fused
 * into the product in training too. With three matrices, the published comparison uses 2/3 of the
 * plain width F. W_g and W_1 are adjacent in memory, so that one product computes both operands. */
#include "variants/parts/dropout.h"
#include "variants/parts/linear.h"
#include "variants/parts/norm.h"
#include "variants/parts/parts.h"

/* first: W_1, or [W_g; W_1]. All but it and w2 may be NULL. */
struct ffn_weights {
    const struct param *first, *bg, *b1, *norm, *w2, *b2, *beta;
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

static double gated_flop(const struct config *c, int rows)
{
    return 6.0 * rows * c->D * c->F; /* three products */
}

static double plain_flop(const struct config *c, int rows)
{
    return 4.0 * rows * c->D * c->F; /* two products */
}

static bool has_gate(const struct config *c) { return c->ffn->flop == gated_flop; }

static void dense_params(const struct config *c, const char *prefix, struct params *p)
{
    const int first = has_gate(c) ? params_map(p, c->F, c->D, prefix, "g.weight") : 0;

    params_map(p, c->F, c->D, prefix, "1.weight");
    if (has_gate(c))
        params_stack(p, first, 2);
    if (has_gate(c) && c->ffn_bias)
        params_vector(p, INIT_ZERO, 0, c->F, prefix, "g.bias");
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

static struct ffn_weights dense_of(const struct config *c, const struct param *w)
{
    struct ffn_weights f = {.first = w};

    w += has_gate(c) ? 2 : 1;
    f.bg = has_gate(c) && c->ffn_bias ? w++ : NULL;
    f.b1 = c->ffn_bias ? w++ : NULL;
    f.norm = has_norm(c) ? w : NULL;
    w += has_norm(c) ? 2 : 0;
    f.w2 = w++;
    f.b2 = c->ffn_bias ? w++ : NULL;
    f.beta = has_beta(c) ? w : NULL;
    return f;
}

static size_t units(const struct config *c, int rows) { return (size_t)rows * (size_t)c->F; }

/* Normed hidden units if there is a norm, hidden units [rows,F], and their pre-activations: of gates
 * both operands [rows,2F], of others if kept for backward. */
static size_t dense_work(const struct config *c, int rows, bool keep)
{
    const int pre = has_gate(c) ? 2 : keep && c->ffn->act != ACT_RELU;

    return (size_t)(has_norm(c) + 1 + pre) * units(c, rows);
}

/* The gradient of the hidden units, and those of both operands of the gate, column sums for that of
 * beta, or statistics of the norm. */
static size_t dense_work_grad(const struct config *c, int rows)
{
    return (has_gate(c) ? 3 : 1) * units(c, rows) + (has_beta(c) ? (size_t)c->F : 0) +
           (has_norm(c) ? NORM_STATS * (size_t)rows : 0);
}

static const float *data(const struct param *w) { return w ? w->data : NULL; }

static float *grad(const struct param *w) { return w ? w->grad : NULL; }

static void dense_forward(const struct engine *g, const struct config *c, const struct param *w,
                          float *y, const float *x, int rows, float *work, bool keep,
                          struct act epilogue, const struct dropout *drop)
{
    const struct ffn_weights f = dense_of(c, w);
    float *const hidden = work + (f.norm ? units(c, rows) : 0), *const pre =
                                                                    hidden + units(c, rows);

    if (has_gate(c) || (keep && c->ffn->act != ACT_RELU))
        linear_apply(g, f.first, pre, x, rows);
    else
        linear_forward(g, f.first, f.b1, hidden, x, rows,
                       (struct act){.kind = c->ffn->act, .y = hidden, .beta = data(f.beta)});
    if (has_gate(c))
        g->ops.glu(&(struct glu){.kind = c->ffn->act,
                                 .y = hidden,
                                 .a = pre,
                                 .b = pre + c->F,
                                 .a_bias = data(f.bg),
                                 .b_bias = data(f.b1),
                                 .ld = 2 * (ptrdiff_t)c->F,
                                 .rows = rows,
                                 .n = c->F,
                                 .threads = g->threads});
    else if (keep && c->ffn->act != ACT_RELU)
        linear_epilogue(
            g,
            (struct act){
                .kind = c->ffn->act, .y = hidden, .bias = data(f.b1), .beta = data(f.beta)},
            pre, rows, c->F);
    dropout(drop, DROP_HIDDEN, hidden, units(c, rows), g->threads);
    if (f.norm)
        layer_norm(g, f.norm, work, hidden, rows, c->F, c->ln_eps);
    linear_forward(g, f.w2, f.b2, y, work, rows, epilogue);
}

static void dense_backward(const struct engine *g, const struct config *c, const struct param *w,
                           float *d_x, const float *d_y, const float *x, int rows,
                           const float *work, float *grad_work, const struct dropout *drop)
{
    const struct ffn_weights f = dense_of(c, w);
    const bool relu = c->ffn->act == ACT_RELU;
    const float *const hidden = work + (f.norm ? units(c, rows) : 0), *const pre =
                                                                          hidden + units(c, rows);
    float *const d_hidden = grad_work, *const behind = grad_work + units(c, rows);

    linear_backward(g, f.w2, f.b2, d_hidden, d_y, work, rows, 0);
    if (f.norm)
        layer_norm_grad(g, f.norm, d_hidden, d_hidden, hidden, behind, rows, c->F, c->ln_eps);
    dropout(drop, DROP_HIDDEN, d_hidden, units(c, rows), g->threads);
    if (has_gate(c))
        g->ops.glu_grad(&(struct glu_grad){.kind = c->ffn->act,
                                           .d_a = behind,
                                           .d_b = behind + c->F,
                                           .d_a_bias = grad(f.bg),
                                           .d_b_bias = grad(f.b1),
                                           .d_y = d_hidden,
                                           .a = pre,
                                           .b = pre + c->F,
                                           .a_bias = data(f.bg),
                                           .b_bias = data(f.b1),
                                           .ld = 2 * (ptrdiff_t)c->F,
                                           .rows = rows,
                                           .n = c->F,
                                           .threads = g->threads});
    else
        g->ops.act_grad(&(struct act_grad){.kind = c->ffn->act,
                                           .d_x = d_hidden,
                                           .d_bias = grad(f.b1),
                                           .d_beta = grad(f.beta),
                                           .sums = behind,
                                           .d_y = d_hidden,
                                           .x = relu ? hidden : pre,
                                           .bias = relu ? NULL : data(f.b1),
                                           .beta = data(f.beta),
                                           .rows = rows,
                                           .n = c->F,
                                           .threads = g->threads});
    linear_backward(g, f.first, NULL, d_x, has_gate(c) ? behind : d_hidden, x, rows, 0);
}

#define DENSE(kind, its_flop)                                                                      \
    .act = (kind), .params = dense_params, .flop = its_flop, .work = dense_work,                   \
    .work_grad = dense_work_grad, .forward = dense_forward, .backward = dense_backward

const struct ffn ffn_relu = {.name = "relu", DENSE(ACT_RELU, plain_flop)};
const struct ffn ffn_gelu = {.name = "gelu", DENSE(ACT_GELU, plain_flop)};
const struct ffn ffn_gelu_tanh = {.name = "gelu_tanh", DENSE(ACT_GELU_TANH, plain_flop)};
const struct ffn ffn_swish = {
    .name = "swish", .numbers = &swish_numbers, DENSE(ACT_SWISH, plain_flop)};
const struct ffn ffn_swish_norm = {.name = "swish_norm", DENSE(ACT_SWISH, plain_flop)};
const struct ffn ffn_glu = {.name = "glu", DENSE(ACT_SIGMOID, gated_flop)};
const struct ffn ffn_reglu = {.name = "reglu", DENSE(ACT_RELU, gated_flop)};
const struct ffn ffn_geglu = {.name = "geglu", DENSE(ACT_GELU, gated_flop)};
const struct ffn ffn_geglu_tanh = {.name = "geglu_tanh", DENSE(ACT_GELU_TANH, gated_flop)};
const struct ffn ffn_swiglu = {.name = "swiglu", DENSE(ACT_SWISH, gated_flop)};
const struct ffn ffn_bilinear = {.name = "bilinear", DENSE(ACT_NONE, gated_flop)};

/* Layers without a feed-forward network: they have no such sub-layer (sublayer_params.c). */
const struct ffn ffn_none = {.name = "none", .no_hidden = true};

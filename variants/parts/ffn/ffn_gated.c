/* SPDX-License-Identifier: MIT
 *
 * Gated feed-forward networks (Shazeer 2020, "GLU Variants Improve Transformer", arXiv:2002.05202):
 *
 *   FFN(x) = W_2 (f(W_g x + b_g) (.) (W_1 x + b_1)) + b_2
 *
 * With three matrices, the published comparison uses 2/3 of the plain width F. W_g and W_1 are
 * adjacent in memory, so that one product computes both operands. */
#include "variants/parts/dropout.h"
#include "variants/parts/linear.h"
#include "variants/parts/parts.h"

struct gated {
    const struct param *wg, *bg, *b1, *w2, *b2; /* wg: [W_g; W_1]; biases may be NULL */
};

static void gated_params(const struct config *c, const char *prefix, struct params *p)
{
    const int first = params_map(p, c->F, c->D, prefix, "g.weight");

    params_map(p, c->F, c->D, prefix, "1.weight");
    params_stack(p, first, 2);
    if (c->ffn_bias) {
        params_vector(p, INIT_ZERO, 0, c->F, prefix, "g.bias");
        params_vector(p, INIT_ZERO, 0, c->F, prefix, "1.bias");
    }
    params_residual(p, params_map(p, c->D, c->F, prefix, "2.weight"));
    if (c->ffn_bias)
        params_vector(p, INIT_ZERO, 0, c->D, prefix, "2.bias");
}

static struct gated gated_of(const struct config *c, const struct param *w)
{
    if (c->ffn_bias)
        return (struct gated){.wg = &w[0], .bg = &w[2], .b1 = &w[3], .w2 = &w[4], .b2 = &w[5]};
    return (struct gated){.wg = &w[0], .w2 = &w[2]};
}

static double gated_flop(const struct config *c, int rows)
{
    return 6.0 * rows * c->D * c->F; /* three products */
}

static size_t units(const struct config *c, int rows) { return (size_t)rows * (size_t)c->F; }

/* Hidden units [rows,F], followed by both operands of the gate [rows,2F]. */
static size_t gated_work(const struct config *c, int rows, bool keep) { return 3 * units(c, rows); }

static size_t gated_work_grad(const struct config *c, int rows) { return 3 * units(c, rows); }

static const float *data(const struct param *bias) { return bias ? bias->data : NULL; }

static void gated_forward(const struct engine *g, const struct config *c, const struct param *w,
                          float *y, const float *x, int rows, float *work, bool keep,
                          struct act epilogue, const struct dropout *drop)
{
    const struct gated f = gated_of(c, w);
    float *hidden = work, *pre = work + units(c, rows);

    linear_apply(g, f.wg, pre, x, rows);
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
    dropout(drop, DROP_HIDDEN, hidden, units(c, rows), g->threads);
    linear_forward(g, f.w2, f.b2, y, hidden, rows, epilogue);
}

static void gated_backward(const struct engine *g, const struct config *c, const struct param *w,
                           float *d_x, const float *d_y, const float *x, int rows,
                           const float *work, float *grad_work, const struct dropout *drop)
{
    const struct gated f = gated_of(c, w);
    const float *hidden = work, *pre = work + units(c, rows);
    float *d_hidden = grad_work, *d_pre = grad_work + units(c, rows);

    linear_backward(g, f.w2, f.b2, d_hidden, d_y, hidden, rows, 0);
    dropout(drop, DROP_HIDDEN, d_hidden, units(c, rows), g->threads);
    g->ops.glu_grad(&(struct glu_grad){.kind = c->ffn->act,
                                       .d_a = d_pre,
                                       .d_b = d_pre + c->F,
                                       .d_a_bias = f.bg ? f.bg->grad : NULL,
                                       .d_b_bias = f.b1 ? f.b1->grad : NULL,
                                       .d_y = d_hidden,
                                       .a = pre,
                                       .b = pre + c->F,
                                       .a_bias = data(f.bg),
                                       .b_bias = data(f.b1),
                                       .ld = 2 * (ptrdiff_t)c->F,
                                       .rows = rows,
                                       .n = c->F,
                                       .threads = g->threads});
    linear_backward(g, f.wg, NULL, d_x, d_pre, x, rows, 0);
}

#define GATED(kind)                                                                                \
    .act = (kind), .params = gated_params, .flop = gated_flop, .work = gated_work,                 \
    .work_grad = gated_work_grad, .forward = gated_forward, .backward = gated_backward

const struct ffn ffn_glu = {.name = "glu", GATED(ACT_SIGMOID)};
const struct ffn ffn_reglu = {.name = "reglu", GATED(ACT_RELU)};
const struct ffn ffn_geglu = {.name = "geglu", GATED(ACT_GELU)};
const struct ffn ffn_geglu_tanh = {.name = "geglu_tanh", GATED(ACT_GELU_TANH)};
const struct ffn ffn_swiglu = {.name = "swiglu", GATED(ACT_SWISH)};
const struct ffn ffn_bilinear = {.name = "bilinear", GATED(ACT_NONE)};

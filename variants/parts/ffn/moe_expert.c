/* SPDX-License-Identifier: MIT
 *
 * The weights of mixtures of experts, and one expert: its maps, plain or gated, forward and
 * backward. */
#include "moe.h"

#include "variants/parts/linear.h"

/* ---- weights ------------------------------------------------------------------------------ */

/* Matrices [out,in] and vectors of one expert, or those of all in one tensor each. */
static void one_params(const struct config *c, const char *prefix, const char *of, int experts,
                       int F, struct params *p)
{
    const int E = max_int(1, experts), rank = experts ? 3 : 2, skip = experts ? 0 : 1;
    const int in[] = {E, F, c->D}, out[] = {E, c->D, F};
    const bool gated = moe_gated(c);

    for (int i = gated ? 0 : 1; i < 2; i++)
        params_narrows(p, params_add(p, INIT_LINEAR, 0, rank, in + skip, "%s%s.%s.weight", prefix,
                                     of, i ? "1" : "g"));
    for (int i = gated ? 0 : 1; c->ffn_bias && i < 2; i++)
        params_add(p, INIT_ZERO, 0, rank - 1, in + skip, "%s%s.%s.bias", prefix, of, i ? "1" : "g");
    params_residual(p, params_narrows(p, params_add(p, INIT_LINEAR, 0, rank, out + skip,
                                                    "%s%s.2.weight", prefix, of)));
    if (c->ffn_bias)
        params_add(p, INIT_ZERO, 0, rank - 1, out + skip, "%s%s.2.bias", prefix, of);
}

void moe_params(const struct config *c, const char *prefix, struct params *p)
{
    const int E = moe_of(c)->experts;

    if (!moe_by_token(c))
        params_chooses(p, params_matrix(p, E, c->D, prefix, "router.weight"));
    if (moe_of(c)->router_bias && !moe_by_token(c))
        params_vector(p, INIT_ZERO, 0, E, prefix, "router.bias");
    one_params(c, prefix, "e", E, c->F, p);
    if (moe_by_token(c) && c->V) {
        const int table = params_add(p, INIT_TURNS, (float)E, 1, &c->V, "%stable", prefix);
        params_bound(p, table, 0, (float)(E - 1));
        params_buffer(p, table);
    }
    if (!moe_of(c)->shared)
        return;
    one_params(c, prefix, "shared", 0, moe_of(c)->shared, p);
    if (moe_of(c)->shared_gate)
        params_map(p, 1, c->D, prefix, "shared_gate.weight");
}

static struct moe_expert_weights next_expert(const struct config *c, const struct param **w)
{
    struct moe_expert_weights x;

    x.wg = moe_gated(c) ? (*w)++ : NULL;
    x.w1 = (*w)++;
    x.bg = c->ffn_bias && moe_gated(c) ? (*w)++ : NULL;
    x.b1 = c->ffn_bias ? (*w)++ : NULL;
    x.w2 = (*w)++;
    x.b2 = c->ffn_bias ? (*w)++ : NULL;
    return x;
}

struct moe_weights moe_weights_of(const struct config *c, const struct param *w)
{
    struct moe_weights of = {0};

    of.router = moe_by_token(c) ? NULL : w++;
    of.router_bias = of.router && moe_of(c)->router_bias ? w++ : NULL;
    of.all = next_expert(c, &w);
    of.table = moe_by_token(c) && c->V ? w++ : NULL;
    if (moe_of(c)->shared)
        of.shared = next_expert(c, &w);
    of.shared_gate = moe_of(c)->shared && moe_of(c)->shared_gate ? w : NULL;
    return of;
}

/* ---- one expert --------------------------------------------------------------------------- */

/* Backward of ReLU reads its output, of others what they were given. */
size_t moe_pre_units(const struct config *c)
{
    return moe_gated(c) ? 2 : moe_act(c) == ACT_RELU ? 0 : 1;
}

static const float *bias_of(const struct moe_expert *x, const struct param *bias)
{
    return x->bias ? bias->data : NULL;
}

static struct glu gated(const struct engine *g, const struct config *c, const struct moe_expert *x)
{
    return (struct glu){.kind = moe_act(c),
                        .y = x->hidden,
                        .a = x->pre,
                        .b = x->pre + (ptrdiff_t)x->n * x->F,
                        .a_bias = bias_of(x, &x->bg),
                        .b_bias = bias_of(x, &x->b1),
                        .beta = moe_clamps(c) ? moe_of(c)->beta : 0,
                        .limit = moe_clamps(c) ? moe_of(c)->limit : 0,
                        .ld = x->F,
                        .rows = x->n,
                        .n = x->F,
                        .threads = g->threads};
}

void moe_expert_hidden(const struct engine *g, const struct config *c, const struct moe_expert *x)
{
    if (x->gated) {
        const struct glu units = gated(g, c, x);
        linear_apply(g, &x->wg, x->pre, x->in, x->n);
        linear_apply(g, &x->w1, x->pre + (ptrdiff_t)x->n * x->F, x->in, x->n);
        g->ops.glu(&units);
        return;
    }
    if (!x->pre) {
        linear_forward(g, &x->w1, x->bias ? &x->b1 : NULL, x->hidden, x->in, x->n,
                       (struct act){.kind = moe_act(c), .y = x->hidden});
        return;
    }
    linear_apply(g, &x->w1, x->pre, x->in, x->n);
    g->ops.act(&(struct act){.kind = moe_act(c),
                             .y = x->hidden,
                             .x = x->pre,
                             .bias = bias_of(x, &x->b1),
                             .rows = x->n,
                             .n = x->F,
                             .threads = g->threads});
}

void moe_expert_output(const struct engine *g, const struct moe_expert *x)
{
    linear_forward(g, &x->w2, x->bias ? &x->b2 : NULL, x->out, x->hidden, x->n,
                   (struct act){.y = x->out});
}

/* The gradients of both operands, the gate's first, then that of the rows. */
static void gated_grad(const struct engine *g, const struct config *c, const struct moe_expert *x,
                       float *d_in, const float *d_hidden, float *d_pre)
{
    const struct glu units = gated(g, c, x);
    float *const d_b = d_pre + (ptrdiff_t)x->n * x->F;

    g->ops.glu_grad(&(struct glu_grad){.kind = units.kind,
                                       .d_a = d_pre,
                                       .d_b = d_b,
                                       .d_a_bias = x->bias ? x->bg.grad : NULL,
                                       .d_b_bias = x->bias ? x->b1.grad : NULL,
                                       .d_y = d_hidden,
                                       .a = units.a,
                                       .b = units.b,
                                       .a_bias = units.a_bias,
                                       .b_bias = units.b_bias,
                                       .beta = units.beta,
                                       .limit = units.limit,
                                       .ld = units.ld,
                                       .rows = x->n,
                                       .n = x->F,
                                       .threads = g->threads});
    linear_weight_grad(g, &x->wg, d_pre, x->in, x->n);
    linear_weight_grad(g, &x->w1, d_b, x->in, x->n);
    linear_input_grad(g, &x->wg, d_in, d_pre, x->n, 0);
    linear_input_grad(g, &x->w1, d_in, d_b, x->n, 1);
}

void moe_expert_grad(const struct engine *g, const struct config *c, const struct moe_expert *x,
                     float *d_in, const float *d_out, float *d_hidden, float *d_pre)
{
    if (x->bias)
        linear_bias_grad(g, &x->b2, d_out, x->n);
    linear_weight_grad(g, &x->w2, d_out, x->hidden, x->n);
    if (x->gated) {
        gated_grad(g, c, x, d_in, d_hidden, d_pre);
        return;
    }
    g->ops.act_grad(&(struct act_grad){.kind = moe_act(c),
                                       .d_x = d_hidden,
                                       .d_bias = x->bias ? x->b1.grad : NULL,
                                       .d_y = d_hidden,
                                       .x = x->pre ? x->pre : x->hidden,
                                       .bias = x->pre ? bias_of(x, &x->b1) : NULL,
                                       .rows = x->n,
                                       .n = x->F,
                                       .threads = g->threads});
    linear_backward(g, &x->w1, NULL, d_in, d_hidden, x->in, x->n, 0);
}

/* SPDX-License-Identifier: MIT
 *
 * Steps that apply one function to each number, an activation of the backend:
 *
 *   y = factor f(x + bias) */
#include "steps.h"

enum { KIND };         /* numbers */
enum { FACTOR, BETA }; /* 0 = none */

static const float *number(const float *x) { return *x == 0 ? NULL : x; }

static void forward(const struct step_call *c)
{
    c->g->ops.act(&(struct act){.kind = (enum act_kind)c->s->n[KIND],
                                .y = c->out->at,
                                .x = c->in->at,
                                .x_row = c->in->row,
                                .bias = c->param[0] ? c->param[0]->data : NULL,
                                .beta = number(&c->s->x[BETA]),
                                .factor = number(&c->s->x[FACTOR]),
                                .rows = c->B * c->L,
                                .n = c->in->n,
                                .threads = c->g->threads});
}

/* The output's gradient becomes that of x + bias. */
static void backward(const struct step_call *c)
{
    c->g->ops.act_grad(&(struct act_grad){.kind = (enum act_kind)c->s->n[KIND],
                                          .d_x = c->d_out->at,
                                          .d_bias = c->param[0] ? c->param[0]->grad : NULL,
                                          .d_y = c->d_out->at,
                                          .x = c->in->at,
                                          .x_row = c->in->row,
                                          .bias = c->param[0] ? c->param[0]->data : NULL,
                                          .beta = number(&c->s->x[BETA]),
                                          .factor = number(&c->s->x[FACTOR]),
                                          .rows = c->B * c->L,
                                          .n = c->in->n,
                                          .threads = c->g->threads});
    step_add_gradient(c, 0);
}

static const struct step_kind kind = {.name = "curve", .forward = forward, .backward = backward};

static struct step *curve_of(struct steps *t, int x, enum curve curve, float factor)
{
    struct step *const s = steps_add(t, &kind);

    CHECK(factor != 0);
    s->n[KIND] = curve == CURVE_CAP ? ACT_TANH : (int)curve;
    s->x[FACTOR] = factor == 1 ? 0 : factor;
    s->x[BETA] = curve == CURVE_CAP ? 1 / factor : 0;
    step_reads(t, s, x);
    return s;
}

int step_apply(struct steps *t, int x, enum curve curve, float factor)
{
    return step_writes(t, curve_of(t, x, curve, factor), t->value[x].width);
}

int step_curve(struct steps *t, int x, enum curve curve, float factor, const char *bias,
               enum init init, float arg)
{
    struct step *const s = curve_of(t, x, curve, factor);
    const int n = t->value[x].width;

    step_vector(t, s, init, arg, n, bias);
    return step_writes(t, s, n);
}

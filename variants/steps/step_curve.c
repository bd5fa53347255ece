/* SPDX-License-Identifier: MIT
 *
 * Steps that apply one function to each number, an activation of the backend:
 *
 *   y = factor f(x + bias) */
#include "curve.h"

static const float *number(const float *x) { return *x == 0 ? NULL : x; }

struct act curve_act(const struct step_call *c, const struct param *bias)
{
    return (struct act){.kind = (enum act_kind)c->s->n[CURVE_KIND],
                        .bias = bias ? bias->data : NULL,
                        .beta = number(&c->s->x[CURVE_BETA]),
                        .factor = number(&c->s->x[CURVE_FACTOR]),
                        .rows = c->B * c->L,
                        .n = c->out->n,
                        .threads = c->g->threads};
}

struct act_grad curve_act_grad(const struct step_call *c, const struct param *bias)
{
    const struct act of = curve_act(c, bias);

    return (struct act_grad){.kind = of.kind,
                             .d_bias = bias ? bias->grad : NULL,
                             .bias = of.bias,
                             .beta = of.beta,
                             .factor = of.factor,
                             .rows = of.rows,
                             .n = of.n,
                             .threads = of.threads};
}

static void forward(const struct step_call *c)
{
    struct act f = curve_act(c, c->param[0]);

    f.y = c->out->at;
    f.x = c->in->at;
    f.x_row = c->in->row;
    c->g->ops.act(&f);
}

/* The output's gradient becomes that of x + bias. */
static void backward(const struct step_call *c)
{
    struct act_grad f = curve_act_grad(c, c->param[0]);

    f.d_x = c->d_out->at;
    f.d_y = c->d_out->at;
    f.x = c->in->at;
    f.x_row = c->in->row;
    c->g->ops.act_grad(&f);
    step_add_gradient(c, 0);
}

const struct step_kind curve_kind = {.name = "curve", .forward = forward, .backward = backward};

static struct step *curve_of(struct steps *t, int x, enum curve curve, float factor)
{
    struct step *const s = STEP_READING(t, &curve_kind, x);

    steps_need(t, factor != 0, "a function times 0  -> the factor 1 leaves it as it is");
    s->n[CURVE_KIND] = curve == CURVE_CAP ? ACT_TANH : (int)curve;
    s->x[CURVE_FACTOR] = factor == 1 ? 0 : factor;
    s->x[CURVE_BETA] = curve == CURVE_CAP ? 1 / factor : 0;
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

static void zeros(const struct step_call *c)
{
    memset(c->out->at, 0, sizeof(float) * (size_t)c->out->n * (size_t)(c->B * c->L));
}

int step_same(struct steps *t, int width, enum curve curve, const char *name, enum init init,
              float arg)
{
    static const struct step_kind kind = {.name = "zeros", .forward = zeros};

    return step_curve(t, step_writes(t, steps_add(t, &kind), width), curve, 1, name, init, arg);
}

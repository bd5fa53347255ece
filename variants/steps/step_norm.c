/* SPDX-License-Identifier: MIT
 *
 * Steps that normalise heads: to unit length, or as root-mean-square and layer norms do, with
 * weights. A head is a row of the backend's norms. */
#include "steps.h"

enum { WIDTH, CLAMPED, LAYER, EACH }; /* numbers */
enum { EPS };
enum { WEIGHT, BIAS }; /* parameters */

static int heads_of(const struct step *s) { return s->width[0] / s->n[WIDTH]; }

/* Backward: what a norm keeps of each head. */
static size_t stats_bytes(const struct step *s, int B, int L)
{
    return sizeof(float) * NORM_STATS * (size_t)B * (size_t)L * (size_t)heads_of(s);
}

/* ---- unit length --------------------------------------------------------------------------- */

/* x / sqrt(sum x^2 + eps) is a root-mean-square norm with weights 1 / sqrt(width) and eps / width;
 * x / max(norm, eps) is SCALE's with weight 1. `weight` is for one head. */
static struct norm unit_of(const struct step *s, float *weight)
{
    const int width = s->n[WIDTH];
    const bool clamped = s->n[CLAMPED];

    for (int e = 0; e < width; e++)
        weight[e] = clamped ? 1 : 1 / sqrtf((float)width);
    return (struct norm){.kind = clamped ? NORM_SCALE : NORM_RMS,
                         .weight = weight,
                         .rows = heads_of(s),
                         .n = width,
                         .eps = clamped ? s->x[EPS] : s->x[EPS] / (float)width,
                         .threads = 1};
}

static size_t unit_scratch(const struct engine *g, const struct step *s, struct extent max,
                           bool backward)
{
    return sizeof(float) * (size_t)s->n[WIDTH] + (backward ? stats_bytes(s, max.B, max.L) : 0);
}

static int team(const struct step_call *c)
{
    enum { PARALLEL_MIN = 1 << 13 };

    return (ptrdiff_t)c->B * c->L * c->in->n > PARALLEL_MIN ? c->g->threads : 1;
}

/* The heads of one row follow each other, those of two rows may not. */
static void unit_forward(const struct step_call *c)
{
    const struct norm all = unit_of(c->s, c->scratch);

#pragma omp parallel for num_threads(team(c))
    for (int i = 0; i < c->B * c->L; i++) {
        struct norm o = all;
        o.x = matrix_row(&c->in[0], i);
        o.y = matrix_row(&c->out[0], i);
        c->g->ops.norm(&o);
    }
}

/* The output's gradient becomes the input's, which is added to. */
static void unit_backward(const struct step_call *c)
{
    const struct norm all = unit_of(c->s, c->scratch);
    float *const stats = (float *)c->scratch + all.n;

#pragma omp parallel for num_threads(team(c))
    for (int i = 0; i < c->B * c->L; i++)
        c->g->ops.norm_grad(
            &(struct norm_grad){.kind = all.kind,
                                .d_x = matrix_row(&c->d_out[0], i),
                                .d_y = matrix_row(&c->d_out[0], i),
                                .x = matrix_row(&c->in[0], i),
                                .weight = all.weight,
                                .stats = stats + (ptrdiff_t)NORM_STATS * all.rows * i,
                                .rows = all.rows,
                                .n = all.n,
                                .eps = all.eps,
                                .threads = 1});
    step_add_gradient(c, 0);
}

int step_unit(struct steps *t, int x, int width, float eps, bool clamped)
{
    static const struct step_kind unit = {.name = "unit",
                                          .forward = unit_forward,
                                          .backward = unit_backward,
                                          .scratch = unit_scratch};
    struct step *const s = STEP_READING(t, &unit, x);
    const int n = t->value[x].width;

    steps_need(t, n % width == 0,
               "step_unit() of other than whole heads  -> a width that divides it");
    s->n[WIDTH] = width;
    s->n[CLAMPED] = clamped;
    s->x[EPS] = eps;
    return step_writes(t, s, n);
}

/* ---- norms with weights -------------------------------------------------------------------- */

static void norm_forward(const struct step_call *c)
{
    const int heads = heads_of(c->s);

    c->g->ops.norm(&(struct norm){.kind = c->s->n[LAYER] ? NORM_LAYER : NORM_RMS,
                                  .y = c->out->at,
                                  .x = c->in->at,
                                  .weight = c->param[WEIGHT]->data,
                                  .bias = c->param[BIAS] ? c->param[BIAS]->data : NULL,
                                  .rows = c->B * c->L * heads,
                                  .n = c->s->n[WIDTH],
                                  .heads = c->s->n[EACH] ? heads : 1,
                                  .eps = c->s->x[EPS],
                                  .threads = c->g->threads});
}

/* As that of unit_backward. */
static void norm_backward(const struct step_call *c)
{
    const int heads = heads_of(c->s);

    c->g->ops.norm_grad(&(struct norm_grad){.kind = c->s->n[LAYER] ? NORM_LAYER : NORM_RMS,
                                            .d_x = c->d_out->at,
                                            .d_weight = c->param[WEIGHT]->grad,
                                            .d_bias = c->param[BIAS] ? c->param[BIAS]->grad : NULL,
                                            .d_y = c->d_out->at,
                                            .x = c->in->at,
                                            .weight = c->param[WEIGHT]->data,
                                            .stats = c->scratch,
                                            .rows = c->B * c->L * heads,
                                            .n = c->s->n[WIDTH],
                                            .heads = c->s->n[EACH] ? heads : 1,
                                            .eps = c->s->x[EPS],
                                            .threads = c->g->threads});
    step_add_gradient(c, 0);
}

static size_t norm_scratch(const struct engine *g, const struct step *s, struct extent max,
                           bool backward)
{
    return backward ? stats_bytes(s, max.B, max.L) : 0;
}

int step_norm(struct steps *t, int x, struct head_norm n)
{
    static const struct step_kind norm = {.name = "norm",
                                          .forward = norm_forward,
                                          .backward = norm_backward,
                                          .scratch = norm_scratch};
    struct step *const s = STEP_READING(t, &norm, x);
    const int all = t->value[x].width, weights = n.each ? all : n.width;

    steps_need(t, all % n.width == 0,
               "step_norm() of other than whole heads  -> a width that divides it");
    steps_need(t, all == t->value[t->value[x].of].width,
               "step_norm() of columns of a wider value  -> step_copy(t, value)");
    s->n[WIDTH] = n.width;
    s->n[LAYER] = n.layer;
    s->n[EACH] = n.each;
    s->x[EPS] = n.eps;
    if (n.weights)
        step_shares(s, n.weights);
    else
        step_vector(t, s, INIT_ONE, 0, weights, "norm.weight");
    if (n.bias && n.weights)
        step_shares(s, n.weights + 1);
    else if (n.bias)
        step_vector(t, s, INIT_ZERO, 0, weights, "norm.bias");
    return step_writes(t, s, all);
}

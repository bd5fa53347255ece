/* SPDX-License-Identifier: MIT
 *
 * Steps that are linear maps: y = x W^T (+ bias), rows of x and y being columns of wider ones. A
 * function of each number that alone reads a map's rows becomes its end: y = f(x W^T + bias). */
#include "curve.h"
#include "variants/parts/linear.h"

enum { WEIGHT, BIAS };
enum { RESULT, PRODUCT }; /* outputs; the product is there if backward reads it */
/* Numbers: the bias' gradient is added as one sum; the first row of the map, and how many; 0 = all. */
enum { BIAS_SUMS = CURVE_KIND + 1, FIRST, ROWS };

static int rows_of(const struct step_call *c) { return c->B * c->L; }

/* The map, or some rows of it, which are `part`. */
static const struct param *weight_of(const struct step_call *c, struct param *part)
{
    const int *const n = c->s->n;

    if (n[ROWS] == 0)
        return c->param[WEIGHT];
    *part = param_rows(c->param[WEIGHT], n[FIRST], n[ROWS]);
    return part;
}

static bool has_curve(const struct step *s) { return s->n[CURVE_KIND] != ACT_NONE; }

/* To rows that are columns of wider ones. */
static void add_bias(const struct step_call *c)
{
    const float *const bias = c->param[BIAS]->data;

#pragma omp parallel for num_threads(team_for(c->g->threads, (double)rows_of(c) * c->out->n))
    for (int i = 0; i < rows_of(c); i++) {
        float *const y = matrix_row(c->out, i);
#pragma omp simd
        for (int e = 0; e < c->out->n; e++)
            y[e] += bias[e];
    }
}

static bool apart(const struct step_call *c, const struct matrix *m)
{
    return m->at && m->batch != c->L * m->row;
}

/* Run a call, or, where its sequences lie apart, one for each. */
static void each(const struct step_call *c, void (*run)(const struct step_call *c))
{
    if (c->B == 1 || (!apart(c, c->in) && !apart(c, c->d_in) && !apart(c, c->out))) {
        run(c);
        return;
    }
    struct step_call one = *c;
    struct matrix *const of[] = {one.in, one.d_in, one.out, one.d_out, &one.out[PRODUCT]};
    one.B = 1;
    for (int b = 0; b < c->B; b++) {
        run(&one);
        for (size_t i = 0; i < ARRAY_LEN(of); i++)
            if (of[i]->at)
                of[i]->at += of[i]->batch;
    }
}

static void forward_one(const struct step_call *c)
{
    const struct matrix *const to = c->out[PRODUCT].at ? &c->out[PRODUCT] : &c->out[RESULT];
    struct param part;
    struct gemm p = linear_product(c->g, weight_of(c, &part), to->at, c->in->at, rows_of(c));
    struct act f = curve_act(c, c->param[BIAS]);

    p.lda = c->in->row;
    p.ldc = to->row;
    f.x = to->at;
    f.y = c->out[RESULT].at;
    if (to == &c->out[RESULT] && to->row == to->n) {
        engine_gemm_act(c->g, &p, &f);
        return;
    }
    c->g->ops.gemm(&p);
    if (to == &c->out[PRODUCT])
        c->g->ops.act(&f);
    else if (c->param[BIAS])
        add_bias(c);
}

static void forward(const struct step_call *c) { each(c, forward_one); }

/* The result's gradient becomes that of the product. */
static void curve_backward(const struct step_call *c)
{
    const bool kept = c->out[PRODUCT].at;
    struct act_grad f = curve_act_grad(c, c->param[BIAS]);

    f.d_x = c->d_out->at;
    f.d_y = c->d_out->at;
    f.x = kept ? c->out[PRODUCT].at : c->out[RESULT].at;
    f.bias = kept ? f.bias : NULL; /* of ReLU, whose output says the same */
    c->g->ops.act_grad(&f);
}

static void backward_one(const struct step_call *c)
{
    struct param part;
    const struct param *const w = weight_of(c, &part);
    const int skip = c->d_in->skip;
    struct gemm of_w = linear_weight_product(c->g, w, c->d_out->at, c->in->at, rows_of(c));
    struct gemm of_x = linear_input_product(c->g, w, c->d_in->at, c->d_out->at, rows_of(c), 1);

    if (has_curve(c->s))
        curve_backward(c);
    else if (c->param[BIAS] && !c->s->n[BIAS_SUMS])
        matrix_add_columns(&c->d_out[0], rows_of(c), c->param[BIAS]->grad);
    of_w.lda = of_x.lda = c->d_out->row;
    of_w.ldb = c->in->row;
    of_x.ldc = c->d_in->row;
    of_x.m -= skip;
    of_x.a += skip * of_x.lda;
    of_x.c += skip * of_x.ldc;
    c->g->ops.gemm(&of_w);
    c->g->ops.gemm(&of_x);
}

static void backward(const struct step_call *c)
{
    if (!has_curve(c->s) && c->s->n[BIAS_SUMS])
        linear_bias_grad(c->g, c->param[BIAS], c->d_out->at, rows_of(c));
    each(c, backward_one);
}

/* Its output stands for ReLU's input in backward, so the product is not kept. */
static bool joins(struct steps *t, struct step *s, const struct step *next)
{
    const int product = s->out[RESULT];
    const bool relu = next->n[CURVE_KIND] == ACT_RELU && next->x[CURVE_FACTOR] == 0;

    if (next->kind != &curve_kind || next->n[CURVE_KIND] == ACT_NONE ||
        (s->param[BIAS] >= 0 && next->param[0] >= 0))
        return false;
    s->n[CURVE_KIND] = next->n[CURVE_KIND];
    s->x[CURVE_FACTOR] = next->x[CURVE_FACTOR];
    s->x[CURVE_BETA] = next->x[CURVE_BETA];
    if (next->param[0] >= 0)
        s->param[BIAS] = next->param[0];
    s->out[RESULT] = next->out[0];
    if (relu)
        steps_drop(t, product);
    else {
        s->out[PRODUCT] = product;
        t->value[product].of_backward = true;
    }
    return true;
}

static double flop(const struct step *s, int B, int L)
{
    return 2.0 * B * L * s->width[0] * s->result;
}

static const struct step_kind kind = {
    .name = "linear", .forward = forward, .backward = backward, .joins = joins, .flop = flop};

static struct step *linear_of(struct steps *t, int x, int width, const char *name)
{
    struct step *const s = STEP_READING(t, &kind, x);
    char weight[48];

    snprintf(weight, sizeof(weight), "%s.weight", name);
    step_matrix(t, s, width, t->value[x].width, weight);
    return s;
}

static struct step *product_of(struct steps *t, int x, int weight, int bias)
{
    struct step *const s = STEP_READING(t, &kind, x);

    step_shares(s, weight);
    if (bias >= 0)
        step_shares(s, bias);
    s->n[BIAS_SUMS] = bias >= 0;
    return s;
}

int step_product(struct steps *t, int x, int width, int weight, int bias)
{
    return step_writes(t, product_of(t, x, weight, bias), width);
}

void step_product_to(struct steps *t, int to, int x, int weight, int bias)
{
    step_writes_to(t, product_of(t, x, weight, bias), to);
}

void step_part_to(struct steps *t, int to, int x, int weight, int first)
{
    struct step *const s = product_of(t, x, weight, -1);

    s->n[FIRST] = first;
    s->n[ROWS] = t->value[to].width;
    step_writes_to(t, s, to);
}

int step_linear(struct steps *t, int x, int width, const char *name)
{
    return step_writes(t, linear_of(t, x, width, name), width);
}

void step_linear_to(struct steps *t, int to, int x, const char *name)
{
    step_writes_to(t, linear_of(t, x, t->value[to].width, name), to);
}

void step_affine_to(struct steps *t, int to, int x, const char *name)
{
    const int width = t->value[to].width;
    struct step *const s = linear_of(t, x, width, name);
    char bias[48];

    snprintf(bias, sizeof(bias), "%s.bias", name);
    step_vector(t, s, INIT_ZERO, 0, width, bias);
    step_writes_to(t, s, to);
}

int step_affine(struct steps *t, int x, int width, const char *name)
{
    const int to = steps_value(t, width);

    step_affine_to(t, to, x, name);
    return to;
}

/* ---- the maps around an attention ----------------------------------------------------------- */

static int width_of(const struct config *c, int which)
{
    return which == ATTN_Q ? config_q_width(c) : which == ATTN_O ? c->D : config_kv_width(c);
}

static int bias_of(const struct config *c, int projections, int which)
{
    const bool has = c->attn_bias == ATTN_BIASED_QKV ? which < ATTN_O : c->attn_bias;

    return has ? projections + ATTN_WEIGHTS + which : -1;
}

int steps_projections(struct steps *t, const char *prefix)
{
    static const char names[] = "qkvo";
    const struct config *const c = t->c;
    const int first = t->n_params;
    char name[48];

    for (int i = 0; i < ATTN_WEIGHTS; i++) {
        snprintf(name, sizeof(name), "%s%c.weight", prefix, names[i]);
        steps_map(t, width_of(c, i), i == ATTN_O ? config_q_width(c) : c->D, name);
    }
    for (int i = 0; i < ATTN_WEIGHTS && bias_of(c, first, i) >= 0; i++) {
        snprintf(name, sizeof(name), "%s%c.bias", prefix, names[i]);
        steps_tensor(t, INIT_ZERO, 0, 1, (const int[]){width_of(c, i)}, name);
    }
    return first;
}

void steps_end_with(struct steps *t, int projections)
{
    steps_residual(t);
    t->o = projections + ATTN_O;
    t->o_bias = bias_of(t->c, projections, ATTN_O);
}

int step_project(struct steps *t, int x, int projections, int which)
{
    return step_product(t, x, width_of(t->c, which), projections + which,
                        bias_of(t->c, projections, which));
}

void step_project_to(struct steps *t, int to, int x, int projections, int which)
{
    step_product_to(t, to, x, projections + which, bias_of(t->c, projections, which));
}

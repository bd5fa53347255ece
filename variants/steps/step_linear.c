/* SPDX-License-Identifier: MIT
 *
 * Steps that are linear maps: y = x W^T (+ bias), rows of x and y being columns of wider ones. */
#include "steps.h"
#include "variants/parts/linear.h"

#include <stdio.h>

enum { WEIGHT, BIAS };

static int rows_of(const struct step_call *c) { return c->B * c->L; }

static void forward(const struct step_call *c)
{
    struct gemm p = linear_product(c->g, c->param[WEIGHT], c->out->at, c->in->at, rows_of(c));

    p.lda = c->in->row;
    p.ldc = c->out->row;
    c->g->ops.gemm(&p);
    for (int i = 0; c->param[BIAS] && i < rows_of(c); i++) {
        const float *const b = c->param[BIAS]->data;
        float *const y = matrix_row(c->out, i);
#pragma omp simd
        for (int e = 0; e < c->out->n; e++)
            y[e] += b[e];
    }
}

static void backward(const struct step_call *c)
{
    const struct param *const w = c->param[WEIGHT];
    struct gemm of_w = linear_weight_product(c->g, w, c->d_out->at, c->in->at, rows_of(c));
    struct gemm of_x = linear_input_product(c->g, w, c->d_in->at, c->d_out->at, rows_of(c), 1);

    of_w.lda = of_x.lda = c->d_out->row;
    of_w.ldb = c->in->row;
    of_x.ldc = c->d_in->row;
    c->g->ops.gemm(&of_w);
    c->g->ops.gemm(&of_x);
    if (c->param[BIAS])
        matrix_add_columns(&c->d_out[0], rows_of(c), c->param[BIAS]->grad);
}

static double flop(const struct step *s, int B, int L)
{
    return 2.0 * B * L * s->width[0] * s->result;
}

static const struct step_kind kind = {
    .name = "linear", .forward = forward, .backward = backward, .flop = flop};

static struct step *linear_of(struct steps *t, int x, int width, const char *name)
{
    struct step *const s = steps_add(t, &kind);
    char weight[48];

    snprintf(weight, sizeof(weight), "%s.weight", name);
    step_reads(t, s, x);
    step_matrix(t, s, width, t->value[x].width, weight);
    return s;
}

int step_linear(struct steps *t, int x, int width, const char *name)
{
    return step_writes(t, linear_of(t, x, width, name), width);
}

void step_linear_to(struct steps *t, int to, int x, const char *name)
{
    step_writes_to(t, linear_of(t, x, t->value[to].width, name), to);
}

int step_affine(struct steps *t, int x, int width, const char *name)
{
    struct step *const s = linear_of(t, x, width, name);
    char bias[48];

    snprintf(bias, sizeof(bias), "%s.bias", name);
    step_vector(t, s, INIT_ZERO, 0, width, bias);
    return step_writes(t, s, width);
}

/* SPDX-License-Identifier: MIT
 *
 * The product of a linear map, and the three of its gradients. */
#include "linear.h"

void linear_narrow(struct gemm *p, const struct param *w)
{
    p->elem = w->elem;
    p->b_narrow = w->narrow;
    p->quantises = w->quantises;
}

struct gemm linear_product(const struct engine *g, const struct param *w, float *y, const float *x,
                           int rows)
{
    const int out = param_out(w), in = w->shape[1];
    struct gemm p = mm_of(g, NT, rows, out, in, 1, x, in, w->data, in, 0, y, out);

    p.b_packed = g->rounds ? NULL : w->packed;
    p.rounds = g->rounds;
    linear_narrow(&p, w);
    return p;
}

void linear_apply(const struct engine *g, const struct param *w, float *y, const float *x, int rows)
{
    const struct gemm p = linear_product(g, w, y, x, rows);

    g->ops.gemm(&p);
}

void linear_forward(const struct engine *g, const struct param *w, const struct param *bias,
                    float *y, const float *x, int rows, struct act epilogue)
{
    const struct gemm p = linear_product(g, w, y, x, rows);

    epilogue.x = y;
    epilogue.bias = bias ? bias->data : NULL;
    epilogue.rows = rows;
    epilogue.n = p.n;
    epilogue.threads = g->threads;
    engine_gemm_act(g, &p, &epilogue);
}

void linear_epilogue(const struct engine *g, struct act epilogue, const float *x, int rows, int n)
{
    epilogue.x = x;
    epilogue.rows = rows;
    epilogue.n = n;
    epilogue.threads = g->threads;
    g->ops.act(&epilogue);
}

void rows_add(const struct engine *g, float *to, const float *x, int rows, int n)
{
    g->ops.act(
        &(struct act){.y = to, .x = to, .add = x, .rows = rows, .n = n, .threads = g->threads});
}

void rows_softmax(const struct engine *g, float *p, int rows, int n)
{
    g->ops.softmax(&(struct softmax){
        .s = p, .ld = n, .rows = rows, .cols = n, .hi = n, .threads = g->threads});
}

void rows_softmax_grad(const struct engine *g, float *d, const float *p, int rows, int n)
{
    g->ops.softmax_grad(&(struct softmax_grad){
        .d = d, .p = p, .ld = n, .rows = rows, .cols = n, .threads = g->threads});
}

struct gemm linear_weight_product(const struct engine *g, const struct param *w, const float *d_y,
                                  const float *x, int rows)
{
    const int out = param_out(w), in = w->shape[1];
    struct gemm p = mm_of(g, TN, out, in, rows, 1, d_y, out, x, in, 1, w->grad, in);

    p.rounds = g->rounds;
    return p;
}

void linear_weight_grad(const struct engine *g, const struct param *w, const float *d_y,
                        const float *x, int rows)
{
    const struct gemm p = linear_weight_product(g, w, d_y, x, rows);

    g->ops.gemm(&p);
}

void linear_bias_grad(const struct engine *g, const struct param *bias, const float *d_y, int rows)
{
    g->ops.act_grad(&(struct act_grad){.kind = ACT_NONE,
                                       .d_bias = bias->grad,
                                       .d_y = d_y,
                                       .rows = rows,
                                       .n = bias->shape[0],
                                       .threads = g->threads});
}

struct gemm linear_input_product(const struct engine *g, const struct param *w, float *d_x,
                                 const float *d_y, int rows, float beta)
{
    const int out = param_out(w), in = w->shape[1];
    struct gemm p = mm_of(g, NN, rows, in, out, 1, d_y, out, w->data, in, beta, d_x, in);

    CHECK(w->elem == ELEM_F32);
    p.rounds = g->rounds;
    return p;
}

void linear_input_grad(const struct engine *g, const struct param *w, float *d_x, const float *d_y,
                       int rows, float beta)
{
    const struct gemm p = linear_input_product(g, w, d_x, d_y, rows, beta);

    g->ops.gemm(&p);
}

void linear_backward(const struct engine *g, const struct param *w, const struct param *bias,
                     float *d_x, const float *d_y, const float *x, int rows, float beta)
{
    linear_weight_grad(g, w, d_y, x, rows);
    if (bias)
        linear_bias_grad(g, bias, d_y, rows);
    linear_input_grad(g, w, d_x, d_y, rows, beta);
}

/* SPDX-License-Identifier: MIT
 *
 * The three products behind a linear map's gradients. */
#include "linear.h"

void linear_weight_grad(const struct engine *g, const struct param *w, const float *d_y,
                        const float *x, int rows)
{
    const int out = w->shape[0], in = w->shape[1];

    g->ops.gemm(&(struct gemm){.ta = true,
                               .m = out,
                               .n = in,
                               .k = rows,
                               .alpha = 1,
                               .beta = 1,
                               .a = d_y,
                               .lda = out,
                               .b = x,
                               .ldb = in,
                               .c = w->grad,
                               .ldc = in,
                               .threads = g->threads});
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

void linear_input_grad(const struct engine *g, const struct param *w, float *d_x, const float *d_y,
                       int rows, float beta)
{
    const int out = w->shape[0], in = w->shape[1];

    g->ops.gemm(&(struct gemm){.m = rows,
                               .n = in,
                               .k = out,
                               .alpha = 1,
                               .beta = beta,
                               .a = d_y,
                               .lda = out,
                               .b = w->data,
                               .ldb = in,
                               .c = d_x,
                               .ldc = in,
                               .threads = g->threads});
}

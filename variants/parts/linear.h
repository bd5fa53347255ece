/* SPDX-License-Identifier: MIT
 *
 * A linear map y = x W^T + bias and its backward, shared by all parts that have one. Rows are
 * contiguous; weight gradients are accumulated. The first weight of a stack stands for the whole
 * stack. The products are available separately for callers that change row strides or the
 * epilogue. */
#pragma once

#include "variants/variant.h"

/* What a product with w has of its element type: b, and whether rows are rounded to q8. */
void linear_narrow(struct gemm *p, const struct param *w);
/* y [rows,out] = x W^T */
struct gemm linear_product(const struct engine *g, const struct param *w, float *y, const float *x,
                           int rows);
void linear_apply(const struct engine *g, const struct param *w, float *y, const float *x,
                  int rows);
/* epilogue.y [rows,out] = f(x W^T + bias) + epilogue.add. The caller sets kind, y and add of
 * `epilogue`; bias may be NULL; y is work space if epilogue.y is elsewhere. */
void linear_forward(const struct engine *g, const struct param *w, const struct param *bias,
                    float *y, const float *x, int rows, struct act epilogue);

/* Where no product comes last: epilogue.y [rows,n] = f(x) + epilogue.add. */
void linear_epilogue(const struct engine *g, struct act epilogue, const float *x, int rows, int n);

/* to [rows,n] += x */
void rows_add(const struct engine *g, float *to, const float *x, int rows, int n);

/* Each row of p [rows,n] to its softmax; d, the gradient of p, to that of what p was made of. */
void rows_softmax(const struct engine *g, float *p, int rows, int n);
void rows_softmax_grad(const struct engine *g, float *d, const float *p, int rows, int n);

/* dW [out,in] += d_y^T x over `rows` rows. */
struct gemm linear_weight_product(const struct engine *g, const struct param *w, const float *d_y,
                                  const float *x, int rows);
void linear_weight_grad(const struct engine *g, const struct param *w, const float *d_y,
                        const float *x, int rows);
/* dbias += column sums of d_y. */
void linear_bias_grad(const struct engine *g, const struct param *bias, const float *d_y, int rows);
/* d_x [rows,in] = beta * d_x + d_y W */
struct gemm linear_input_product(const struct engine *g, const struct param *w, float *d_x,
                                 const float *d_y, int rows, float beta);
void linear_input_grad(const struct engine *g, const struct param *w, float *d_x, const float *d_y,
                       int rows, float beta);
/* All three of a map: of W, of its bias unless that is NULL, and last of its rows. */
void linear_backward(const struct engine *g, const struct param *w, const struct param *bias,
                     float *d_x, const float *d_y, const float *x, int rows, float beta);

/* SPDX-License-Identifier: MIT
 *
 * A linear map y = x W^T + bias and its backward, shared by every part that has one. Rows are
 * contiguous; weights' gradients are added to. A weight that others are stacked behind stands for
 * all of them. The products are given to callers that have something to change about them: rows
 * that lie apart, or what follows. */
#ifndef LINEAR_H
#define LINEAR_H

#include "variants/variant.h"

/* y [rows,out] = x W^T */
struct gemm linear_product(const struct engine *g, const struct param *w, float *y, const float *x,
                           int rows);
/* after.y [rows,out] = f(x W^T + bias) + after.add. Of `after` the caller sets kind, y and add;
 * bias may be NULL; y is work space where after.y lies elsewhere. */
void linear_forward(const struct engine *g, const struct param *w, const struct param *bias,
                    float *y, const float *x, int rows, struct act after);

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

#endif

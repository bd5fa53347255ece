/* SPDX-License-Identifier: MIT
 *
 * Backward of a linear map y = x W^T + bias, shared by every part that has one. Rows
 * are contiguous; weights' gradients are added to. */
#ifndef LINEAR_H
#define LINEAR_H

#include "../variant.h"

/* dW [out,in] += d_y^T x over `rows` rows. */
void linear_weight_grad(const struct engine *g, const struct param *w, const float *d_y,
                        const float *x, int rows);
/* dbias += column sums of d_y. */
void linear_bias_grad(const struct engine *g, const struct param *bias, const float *d_y, int rows);
/* d_x [rows,in] = beta * d_x + d_y W */
void linear_input_grad(const struct engine *g, const struct param *w, float *d_x, const float *d_y,
                       int rows, float beta);

#endif

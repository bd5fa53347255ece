/* SPDX-License-Identifier: MIT
 *
 * The norm of a stream of rows [rows,D], of the model's kind: which parameters it has, how it is
 * applied, its backward. Where a norm stands is the wiring's affair. */
#ifndef NORM_H
#define NORM_H

#include "variants/variant.h"

/* Append the parameters of one norm: "layers.0." and "ln1" make "layers.0.ln1.weight". */
void norm_params(const struct config *c, const char *prefix, const char *name, struct params *p);

/* y = N(x + add) for `rows` contiguous rows; w is the first of the norm's parameters. add may be
 * NULL; y may be x or add. */
void norm_apply(const struct engine *g, const struct config *c, const struct param *w, float *y,
                const float *x, const float *add, int rows);

/* d_x from d_y, for the x that went in (with no add); d_x may lie where x or d_y does. Adds to the
 * parameters' gradients. stats [NORM_STATS * rows] is work space. */
void norm_backward(const struct engine *g, const struct config *c, const struct param *w,
                   float *d_x, const float *d_y, const float *x, float *stats, int rows);

#endif

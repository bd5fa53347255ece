/* SPDX-License-Identifier: MIT
 *
 * The model's norm for rows [rows,D]: its parameters, forward and backward. The wiring decides
 * where norms are applied. */
#pragma once

#include "variants/variant.h"

/* What each kind has of its own; NULL = nothing. */
extern const struct part_numbers *const norm_numbers[NORM_KIND_COUNT];

/* Append the parameters of one norm: "layers.0." and "ln1" make "layers.0.ln1.weight". AdaNorm has
 * none. */
void norm_params(const struct config *c, const char *prefix, const char *name, struct params *p);

/* y = N(x + add) for `rows` contiguous rows; w is the first of the norm's parameters. add may be
 * NULL; y may be x or add. */
void norm_apply(const struct engine *g, const struct config *c, const struct param *w, float *y,
                const float *x, const float *add, int rows);

/* d_x from d_y, for forward's input x (without add); d_x may be d_y. Accumulates the parameters'
 * gradients, and the steps of statistics, which are means over `of` rows: these and those of other
 * calls. stats [NORM_STATS * rows] is work space. */
void norm_backward(const struct engine *g, const struct config *c, const struct param *w,
                   float *d_x, const float *d_y, const float *x, float *stats, int rows, int of);
/* A layer norm of rows of n with weights and biases w[0] and w[1], whatever the model's kind is. */
void layer_norm(const struct engine *g, const struct param *w, float *y, const float *x, int rows,
                int n, float eps);
void layer_norm_grad(const struct engine *g, const struct param *w, float *d_x, const float *d_y,
                     const float *x, float *stats, int rows, int n, float eps);
/* Without the parameters' gradients. */
void norm_input_grad(const struct engine *g, const struct config *c, const struct param *w,
                     float *d_x, const float *d_y, const float *x, float *stats, int rows);

/* ---- PowerNorm, norm_power.c ----------------------------------------------------------------- */

/* It divides each channel by a stored quadratic mean. Arguments are as above. */
extern const struct part_numbers power_numbers;

/* weight, bias, and the statistics phi and nu, [D] each. */
void power_params(const struct config *c, const char *prefix, const char *name, struct params *p);

void power_apply(const struct engine *g, const struct config *c, const struct param *w, float *y,
                 const float *x, const float *add, int rows);

/* of = 0: without gradients of parameters and steps of statistics. */
void power_backward(const struct engine *g, const struct config *c, const struct param *w,
                    float *d_x, const float *d_y, const float *x, float *stats, int rows, int of);

/* SPDX-License-Identifier: MIT
 *
 * PowerNorm, the norm of rows that divides each channel by a stored quadratic mean. Arguments are
 * those of norm.h. */
#pragma once

#include "variants/variant.h"

extern const struct part_numbers power_numbers;

/* weight, bias, and the statistics phi and nu, [D] each. */
void power_params(const struct config *c, const char *prefix, const char *name, struct params *p);

void power_apply(const struct engine *g, const struct config *c, const struct param *w, float *y,
                 const float *x, const float *add, int rows);

/* of = 0: without gradients of parameters and steps of statistics. */
void power_backward(const struct engine *g, const struct config *c, const struct param *w,
                    float *d_x, const float *d_y, const float *x, float *stats, int rows, int of);

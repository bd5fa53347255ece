/* SPDX-License-Identifier: MIT
 *
 * The numbers of a step that say which function it applies to each number: a step of its own
 * (step_curve.c), or the end of a linear map (step_linear.c). */
#pragma once

#include "steps.h"

enum { CURVE_KIND };               /* of step.n: an act_kind */
enum { CURVE_FACTOR, CURVE_BETA }; /* of step.x; 0 = none */

extern const struct step_kind curve_kind;

/* y = factor f(x + bias) of a step with these numbers, and its gradient; the caller sets y and x,
 * or d_x, d_y and x. bias may be NULL. */
struct act curve_act(const struct step_call *c, const struct param *bias);
struct act_grad curve_act_grad(const struct step_call *c, const struct param *bias);

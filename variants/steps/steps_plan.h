/* SPDX-License-Identifier: MIT
 *
 * The end of building a list of steps. */
#ifndef STEPS_PLAN_H
#define STEPS_PLAN_H

#include "steps.h"

/* All steps have been added, and the result is known. */
void steps_plan(struct steps *t);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The end of building a list of steps. */
#pragma once

#include "steps.h"

/* A value that has room among the others', and a gradient. */
bool value_lies_here(const struct steps *t, int value);

/* All steps have been added, and the result is known. */
void steps_plan(struct steps *t);

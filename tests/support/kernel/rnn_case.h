/* SPDX-License-Identifier: MIT
 *
 * For tests of recurrent cells. */
#pragma once

#include "tests/support/every_backend.h"

#include <math.h>

enum { GATES = 4 }; /* maximum of a cell */

static inline double logistic(double x) { return 1 / (1 + exp(-x)); }

/* SPDX-License-Identifier: MIT
 *
 * For tests of recurrent cells. */
#pragma once

#include "tests/support/every_backend.h"
#include "tests/support/in_double.h"

enum { GATES = 4 }; /* maximum of a cell */

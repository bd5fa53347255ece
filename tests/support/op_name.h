/* SPDX-License-Identifier: MIT
 *
 * The operations of backends by their names. */
#pragma once

#include "variants/backends/backend.h"

#define X(op, type) #op,
static const char *const op_name[OP_COUNT] = {OPS(X)};
#undef X

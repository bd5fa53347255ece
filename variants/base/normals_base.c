/* SPDX-License-Identifier: MIT
 *
 * Normally distributed numbers by Box and Muller (1958) with baseline instructions:
 * normals.inc.c for any CPU. */
#define NORMALS normals_base
#include "normals.inc.c"

/* SPDX-License-Identifier: MIT
 *
 * Box-Muller with baseline x86-64. */
#define NORMALS normals_base
#include "normals.inc.c"

/* SPDX-License-Identifier: MIT
 *
 * Box-Muller with baseline instructions. */
#define NORMALS normals_base
#include "normals.inc.c"

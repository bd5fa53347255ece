/* SPDX-License-Identifier: MIT
 *
 * Box-Muller with 256-bit vectors. */
#define NORMALS normals_avx2
#include "normals.inc.c"

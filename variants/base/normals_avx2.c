/* SPDX-License-Identifier: MIT
 *
 * Normally distributed numbers by Box and Muller (1958) with vectors of 256 bits: normals.inc.c
 * for AVX2. */
#define NORMALS normals_avx2
#include "normals.inc.c"

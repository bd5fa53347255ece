/* SPDX-License-Identifier: MIT
 *
 * Box-Muller on blocks of random bits. Every level of instructions gives the same floats: IEEE
 * operations in one order, no fused multiply-add, no function of the C library. */
#pragma once

#include <stdint.h>

enum { NORMALS_PAIRS = 128 }; /* pairs of one call */

/* 32 bits to the middle of one of 2^32 intervals of (0,1): never 0, so that its logarithm is
 * finite. */
static inline double rng_unit(uint32_t bits) { return ((double)bits + 0.5) * 0x1p-32; }

/* z[0][p] and z[1][p] = the two N(0,1) values of the uniform bits u[p] (radius) and v[p] (angle).
 */
typedef void normals_fn(double z[2][NORMALS_PAIRS], const uint32_t u[NORMALS_PAIRS],
                        const uint32_t v[NORMALS_PAIRS]);

normals_fn normals_base, normals_avx2;

/* SPDX-License-Identifier: MIT
 *
 * The levels of vector instructions with whole kernels, by architecture: SIMD is the name of the first
 * one's backend, ISA_SIMD its level, SIMD_LEVELS the names of all. */
#pragma once

#include "variants/base/cpu.h"

#if defined(__aarch64__)
#define SIMD "neon"
#define SIMD_LEVELS "neon"
#define ISA_SIMD ISA_NEON
#else
#define SIMD "avx2"
#define SIMD_LEVELS "avx2", "avx512"
#define ISA_SIMD ISA_AVX2
#endif

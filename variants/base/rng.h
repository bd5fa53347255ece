/* SPDX-License-Identifier: MIT
 *
 * Counter-based random numbers (Random123's Philox4x32-10): number n of a stream is a pure
 * function of (seed, stream, n), so any number of threads draws the same values. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A stream's number from a name; a tensor's values then do not depend on other tensors. */
uint64_t rng_stream(const char *name);

/* 32 uniform bits, number n of the stream. */
uint32_t rng_u32(uint64_t seed, uint64_t stream, uint64_t n);

/* Numbers 4 * block to 4 * block + 3, which one Philox call generates. */
void rng_u32_block(uint32_t out[4], uint64_t seed, uint64_t stream, uint64_t block);

/* Uniform in (0, 1). */
double rng_uniform(uint64_t seed, uint64_t stream, uint64_t n);

/* x[0..n) = mean + sd * N(0,1), numbers 0..n-1 of the stream. */
void rng_normal(float *x, size_t n, uint64_t seed, uint64_t stream, float mean, float sd);

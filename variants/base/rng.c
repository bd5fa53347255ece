/* SPDX-License-Identifier: MIT
 *
 * Random numbers from Philox. */
#include "rng.h"

#include <Random123/philox.h>
#include <math.h>
#include <string.h>
#include <xxhash.h>

uint64_t rng_stream(const char *name) { return XXH3_64bits(name, strlen(name)); }

static philox4x32_ctr_t draw(uint64_t seed, uint64_t stream, uint64_t block)
{
    const philox4x32_ctr_t ctr = {
        {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)stream, (uint32_t)(stream >> 32)}};
    const philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    return philox4x32(ctr, key);
}

/* 32 bits to the middle of one of 2^32 intervals of (0,1): never 0, so log() is safe. */
static double unit(uint32_t bits) { return ((double)bits + 0.5) * 0x1p-32; }

uint32_t rng_u32(uint64_t seed, uint64_t stream, uint64_t n)
{
    return draw(seed, stream, n / 4).v[n % 4];
}

void rng_u32_block(uint32_t out[4], uint64_t seed, uint64_t stream, uint64_t block)
{
    const philox4x32_ctr_t bits = draw(seed, stream, block);

    for (int e = 0; e < 4; e++)
        out[e] = bits.v[e];
}

double rng_uniform(uint64_t seed, uint64_t stream, uint64_t n)
{
    return unit(rng_u32(seed, stream, n));
}

void rng_normal(float *x, size_t n, uint64_t seed, uint64_t stream, float mean, float sd)
{
    const double turn = 6.283185307179586;

    for (size_t i = 0; i < n; i += 4) { /* Box-Muller: two pairs per block */
        const philox4x32_ctr_t bits = draw(seed, stream, i / 4);
        double z[4];
        for (int p = 0; p < 4; p += 2) {
            const double radius = sqrt(-2.0 * log(unit(bits.v[p])));
            const double angle = turn * unit(bits.v[p + 1]);
            z[p] = radius * cos(angle);
            z[p + 1] = radius * sin(angle);
        }
        for (size_t e = 0; e < 4 && i + e < n; e++)
            x[i + e] = mean + sd * (float)z[e];
    }
}

/* SPDX-License-Identifier: MIT
 *
 * Random numbers from Philox. */
#include "rng.h"

#include "cpu.h"
#include "normals.h"

#include <Random123/philox.h>
#include <xxhash.h>

uint64_t rng_stream(const char *name) { return XXH3_64bits(name, strlen(name)); }

static philox4x32_ctr_t draw(uint64_t seed, uint64_t stream, uint64_t block)
{
    const philox4x32_ctr_t ctr = {
        {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)stream, (uint32_t)(stream >> 32)}};
    const philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    return philox4x32(ctr, key);
}

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
    return rng_unit(rng_u32(seed, stream, n));
}

void rng_normal(float *x, size_t n, uint64_t seed, uint64_t stream, float mean, float sd)
{
#if defined(__x86_64__)
    normals_fn *const normals = cpu_isa() >= ISA_AVX2 ? normals_avx2 : normals_base;
#else
    normals_fn *const normals = normals_base; /* has the vectors of doubles that there are */
#endif
    uint32_t u[NORMALS_PAIRS], v[NORMALS_PAIRS];
    double z[2][NORMALS_PAIRS];

    for (size_t i = 0; i < n; i += 2 * NORMALS_PAIRS) {
        const size_t pairs = (n - i + 1) / 2 < NORMALS_PAIRS ? (n - i + 1) / 2 : NORMALS_PAIRS;
        for (size_t p = 0; p < NORMALS_PAIRS; p += 2) { /* two pairs per block */
            const philox4x32_ctr_t bits =
                p < pairs ? draw(seed, stream, (i + 2 * p) / 4) : (philox4x32_ctr_t){{0}};
            u[p] = bits.v[0];
            v[p] = bits.v[1];
            u[p + 1] = bits.v[2];
            v[p + 1] = bits.v[3];
        }
        normals(z, u, v);
        for (size_t e = 0; e < 2 * NORMALS_PAIRS && i + e < n; e++)
            x[i + e] = mean + sd * (float)z[e % 2][e / 2];
    }
}

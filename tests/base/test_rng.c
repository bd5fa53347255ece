/* SPDX-License-Identifier: MIT
 *
 * Random numbers: the published generator, pure functions of (seed, stream, n), with their stated
 * moments. All draws are seeded, so a bound that holds once holds always; bounds are five standard
 * deviations of the estimator (a fair seed fails one in 1.7 million). */
#include "tests/support/kept.h"
#include "variants/base/cpu.h"
#include "variants/base/rng.h"

#include <Random123/philox.h>
#include <criterion/criterion.h>

enum { DRAWS = 1 << 18 };
static const double sigmas = 5.0;

static float *normals(size_t n, uint64_t seed, const char *stream, float mean, float sd)
{
    float *x = room(n, sizeof(*x));

    rng_normal(x, n, seed, rng_stream(stream), mean, sd);
    return x;
}

/* Philox4x32-10 known answers published with Random123: the library on this compiler. */
Test(rng, library_gives_known_answers)
{
    static const struct {
        uint32_t ctr[4], key[2], out[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        philox4x32_ctr_t ctr;
        philox4x32_key_t key;
        memcpy(ctr.v, known[i].ctr, sizeof(ctr.v));
        memcpy(key.v, known[i].key, sizeof(key.v));
        const philox4x32_ctr_t out = philox4x32(ctr, key);
        for (int lane = 0; lane < 4; lane++)
            cr_expect_eq(out.v[lane], known[i].out[lane], "vector %zu, lane %d", i, lane);
    }
}

/* The positions of seed, stream and n in counter and key are part of the contract: existing
 * checkpoints and tables depend on them. */
Test(rng, is_philox_of_its_arguments)
{
    static const uint32_t zero[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    const uint64_t seed = 0xa4093822299f31d0, stream = 0x13198a2e03707344;
    const uint64_t n[] = {0, 1, 4, 0x3ffffffff, 0x400000000, UINT64_MAX};

    for (uint64_t i = 0; i < 4; i++)
        cr_expect_eq(rng_u32(0, 0, i), zero[i], "number %d", (int)i);
    for (size_t i = 0; i < ARRAY_LEN(n); i++) {
        const uint64_t block = n[i] / 4;
        const philox4x32_ctr_t ctr = {
            {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)stream, (uint32_t)(stream >> 32)}};
        const philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
        cr_expect_eq(rng_u32(seed, stream, n[i]), philox4x32(ctr, key).v[n[i] % 4]);
    }
}

Test(rng, every_argument_counts)
{
    const uint32_t here = rng_u32(1, 2, 3);
    const uint64_t high = (uint64_t)1 << 40;

    cr_expect_neq(rng_u32(2, 2, 3), here);
    cr_expect_neq(rng_u32(1 + high, 2, 3), here);
    cr_expect_neq(rng_u32(1, 3, 3), here);
    cr_expect_neq(rng_u32(1, 2 + high, 3), here);
    cr_expect_neq(rng_u32(1, 2, 4), here);
    cr_expect_neq(rng_u32(1, 2, 3 + high), here);
    cr_expect_eq(rng_u32(1, 2, 3), here);
    cr_expect_neq(rng_stream("layers.0.attn.q.weight"), rng_stream("layers.1.attn.q.weight"));
    cr_expect_eq(rng_stream("layers.0.attn.q.weight"), rng_stream("layers.0.attn.q.weight"));
}

Test(rng, same_numbers_for_any_thread_count)
{
    enum { N = 1003 };
    uint32_t serial[N], parallel[N];

    for (int i = 0; i < N; i++)
        serial[i] = rng_u32(7, 8, (uint64_t)i);
    for (int threads = 1; threads <= 4; threads++) {
        memset(parallel, 0, sizeof(parallel));
#pragma omp parallel for num_threads(threads) schedule(dynamic, 3)
        for (int i = 0; i < N; i++)
            parallel[i] = rng_u32(7, 8, (uint64_t)i);
        cr_expect_arr_eq(parallel, serial, sizeof(serial), "%d threads", threads);
    }
}

Test(rng, first_normals_do_not_depend_on_how_many)
{
    enum { MOST = 37 };
    float *whole = normals(MOST, 3, "x", 0.5f, 2.0f);

    for (size_t n = 0; n <= MOST; n++) {
        float part[MOST + 1];
        for (size_t i = 0; i <= MOST; i++)
            part[i] = -99.0f;
        rng_normal(part, n, 3, rng_stream("x"), 0.5f, 2.0f);
        cr_expect_eq(memcmp(part, whole, n * sizeof(*part)), 0, "n = %zu", n);
        cr_expect_eq(part[n], -99.0f, "n = %zu: wrote past the end", n);
    }
}

/* Box and Muller's formulas with the C library's functions, on every level of instructions: the
 * double results differ by rounding, the floats by a unit in the last place at most, and not from
 * level to level. */
Test(rng, normals_are_box_and_mullers_on_every_level)
{
    enum { N = 1 << 16 };
    float *first = normals(N, 1, "levels", 0.0f, 1.0f);

    for (int i = 0; i < N; i += 2) {
        const uint64_t stream = rng_stream("levels");
        const double radius = sqrt(-2 * log(rng_uniform(1, stream, (uint64_t)i)));
        const double angle = 6.283185307179586 * rng_uniform(1, stream, (uint64_t)i + 1);
        const double pair[2] = {radius * cos(angle), radius * sin(angle)};
        for (int e = 0; e < 2; e++)
            cr_assert_leq(fabs(first[i + e] - pair[e]), 0x1p-23 * fabs(pair[e]) + 0x1p-48,
                          "number %d", i + e);
    }
    for (enum isa isa = ISA_BASE; isa <= cpu_isa_unmasked(); isa++) {
        cpu_limit(isa);
        float *x = normals(N, 1, "levels", 0.0f, 1.0f);
        cr_expect_arr_eq(x, first, N * sizeof(*x), "%s", isa_name[isa]);
    }
}

/* Var(mean) = sd^2 / n. Var(s^2) = 2 sd^4 / n, so s is off by sd / sqrt(2 n). The fourth moment of
 * N(0,1) is 3 and that of its square 105, so its estimate has variance (105 - 9) / n. */
Test(rng, normals_have_their_moments)
{
    const float mean = -1.25f, sd = 0.75f;
    float *x = normals(DRAWS, 1, "moments", mean, sd);
    double sum = 0, sum2 = 0, sum3 = 0, sum4 = 0;

    for (int i = 0; i < DRAWS; i++) {
        const double z = ((double)x[i] - mean) / sd;
        sum += z;
        sum2 += z * z;
        sum3 += z * z * z;
        sum4 += z * z * z * z;
    }
    cr_expect_leq(fabs(sum / DRAWS), sigmas / sqrt(DRAWS));
    cr_expect_leq(fabs(sqrt(sum2 / DRAWS) - 1.0), sigmas / sqrt(2.0 * DRAWS));
    cr_expect_leq(fabs(sum3 / DRAWS), sigmas * sqrt(15.0 / DRAWS)); /* E z^6 = 15 */
    cr_expect_leq(fabs(sum4 / DRAWS - 3.0), sigmas * sqrt(96.0 / DRAWS));
}

/* Each of 64 equal bins of (0,1) gets n p draws, with variance n p (1-p). */
Test(rng, uniforms_fill_the_unit_interval)
{
    enum { CELLS = 64 };
    const double p = 1.0 / CELLS;
    int count[CELLS] = {0};

    for (int i = 0; i < DRAWS; i++) {
        const double x = rng_uniform(5, 6, (uint64_t)i);
        cr_assert(x > 0.0 && x < 1.0, "number %d is %.17g", i, x);
        count[(int)(x * CELLS)]++;
    }
    for (int c = 0; c < CELLS; c++)
        cr_expect_leq(fabs(count[c] - DRAWS * p), sigmas * sqrt(DRAWS * p * (1 - p)), "cell %d", c);
}

/* The correlation of independent N(0,1) samples has variance 1 / n: between streams, between seeds
 * and between neighbours, which Box-Muller makes from one pair of uniforms. */
Test(rng, streams_are_not_correlated)
{
    float *x = normals(DRAWS + 1, 1, "a", 0.0f, 1.0f);
    float *stream = normals(DRAWS, 1, "b", 0.0f, 1.0f), *seed = normals(DRAWS, 2, "a", 0.0f, 1.0f);
    double by_stream = 0, by_seed = 0, by_neighbour = 0;

    for (int i = 0; i < DRAWS; i++) {
        by_stream += (double)x[i] * stream[i];
        by_seed += (double)x[i] * seed[i];
        by_neighbour += (double)x[i] * x[i + 1];
    }
    cr_expect_leq(fabs(by_stream / DRAWS), sigmas / sqrt(DRAWS));
    cr_expect_leq(fabs(by_seed / DRAWS), sigmas / sqrt(DRAWS));
    cr_expect_leq(fabs(by_neighbour / DRAWS), sigmas / sqrt(DRAWS));
}

/* SPDX-License-Identifier: MIT
 *
 * Element types against their definitions: every bf16 and what lies between two of them, blocks of
 * 8-bit numbers within half a step, of 4-bit numbers as near as a search finds them. */
#include "tests/support/compared.h"
#include "variants/base/elem.h"
#include "variants/base/rng.h"
#include "variants/base/safetensors.h"

static float of_bits(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

enum { HALVES = 1 << 16, EXPONENT = 0x7f80, INFINITE = 0x7f80 };

/* ---- bf16 ------------------------------------------------------------------------------------ */

/* The nearer neighbour; of two as near, the even one. The one above the largest is 2^128, as if
 * there were no end of exponents. */
static uint32_t nearest(uint32_t half, uint32_t low)
{
    const double below = (double)bf16_float((uint16_t)half), x = (double)of_bits(half << 16 | low);
    const uint32_t next = half + 1;
    const double above =
        (next & 0x7fff) == INFINITE ? copysign(0x1p128, below) : (double)bf16_float((uint16_t)next);
    const double down = fabs(x - below), up = fabs(above - x);

    return down < up || (down == up && half % 2 == 0) ? half : next;
}

Test(elem, bf16_rounds_to_nearest_even)
{
    static const uint32_t lows[] = {0,      1,      2,      0x00ff, 0x4000, 0x7ffe, 0x7fff,
                                    0x8000, 0x8001, 0x8100, 0xc000, 0xfffe, 0xffff};

    for (uint32_t half = 0; half < HALVES; half++)
        for (size_t i = 0; i < ARRAY_LEN(lows); i++) {
            const uint32_t bits = half << 16 | lows[i];
            const float x = of_bits(bits);
            const uint32_t got = bf16_of(x);
            if (isnan(x))
                cr_assert_eq(got, half | 0x40, "%08x: %04x", bits, got);
            else if ((half & EXPONENT) == 0) /* also those that would round up to a normal number */
                cr_assert_eq(got, half & 0x8000, "%08x: %04x", bits, got);
            else if (isinf(x))
                cr_assert_eq(got, half);
            else
                cr_assert_eq(got, nearest(half, lows[i]), "%08x: %04x", bits, got);
        }
}

/* ---- q8 -------------------------------------------------------------------------------------- */

/* Half a step, and the roundings of the scale and of the number itself: 127 and 1 times 2^-24 of
 * the step and a little. */
static void expect_near(const float *x, int n)
{
    enum { MOST = 256 };
    struct q8_block block[MOST / Q8_BLOCK];
    float got[MOST], part[7];

    cr_assert_leq(n, MOST);
    cr_assert_leq(elem_row_bytes(ELEM_Q8, n), sizeof(block));
    memset(block, 0x55, sizeof(block));
    elem_narrow(ELEM_Q8, block, x, n);
    elem_widen(ELEM_Q8, got, block, 0, n);
    for (int i = 0; i < n; i++) {
        const double step = (double)block[i / Q8_BLOCK].scale;
        cr_expect(fabs((double)got[i] - (double)x[i]) <= step * (0.5 + 130 * 0x1p-24),
                  "%d: %g for %g, step %g", i, (double)got[i], (double)x[i], step);
    }
    for (int i = n; i % Q8_BLOCK; i++)
        cr_expect_eq(block[i / Q8_BLOCK].q[i % Q8_BLOCK], 0);
    for (int first = 0; first + 7 <= n; first += 5) {
        elem_widen(ELEM_Q8, part, block, first, 7);
        cr_expect_arr_eq(part, got + first, sizeof(part));
    }
}

Test(elem, q8_is_within_half_a_step)
{
    static const int lengths[] = {1, 31, 32, 33, 100, 256};
    float x[256];

    for (size_t l = 0; l < ARRAY_LEN(lengths); l++)
        for (int exponent = -100; exponent <= 100; exponent += 25) {
            for (int i = 0; i < lengths[l]; i++)
                x[i] = (float)ldexp(sin(1.7 * i + exponent) + 0.001 * i, exponent);
            expect_near(x, lengths[l]);
        }
}

/* The largest of a block is 127 steps, and ties go to the even number. */
Test(elem, q8_of_known_numbers)
{
    float x[Q8_BLOCK] = {-127, 126.5f, 125.5f, 0.5f, 1.5f, -0.5f, -2.5f, 0.49f};
    static const int8_t want[] = {-127, 126, 126, 0, 2, 0, -2, 0};
    struct q8_block block;

    elem_narrow(ELEM_Q8, &block, x, Q8_BLOCK);
    cr_expect_eq(block.scale, 1.0f);
    cr_expect_arr_eq(block.q, want, sizeof(want));
}

/* Rows that are multiplied are rounded in floats: x (127 / max|x|) is off by two roundings of 127 at
 * most, x / scale here by one, so q is that of a weight or, next to a tie, its neighbour. */
Test(elem, rows_are_rounded_like_weights)
{
    enum { N = 100 };
    float x[N];
    struct q8_block row[4], weight[4];

    for (int exponent = -100; exponent <= 100; exponent += 25) {
        for (int i = 0; i < N; i++)
            x[i] = (float)ldexp(sin(1.7 * i + exponent) + 0.001 * i, exponent);
        memset(row, 0x55, sizeof(row));
        q8_round_row(row, x, N);
        elem_narrow(ELEM_Q8, weight, x, N);
        for (int i = 0; i < 4 * Q8_BLOCK; i++) {
            const struct q8_block *const a = &row[i / Q8_BLOCK], *const b = &weight[i / Q8_BLOCK];
            const int q = a->q[i % Q8_BLOCK];
            cr_expect_eq(a->scale, b->scale);
            cr_expect(q == b->q[i % Q8_BLOCK] ||
                      fabs(fabs(q - (double)x[i] / (double)a->scale) - 0.5) < 400 * 0x1p-24);
        }
    }
}

Test(elem, a_row_with_what_is_not_finite_has_no_numbers)
{
    struct q8_block row[2];
    float x[Q8_BLOCK + 1] = {[3] = FLT_MIN, [Q8_BLOCK] = INFINITY};

    q8_round_row(row, x, Q8_BLOCK + 1);
    cr_expect(row[0].scale == 0 && row[0].q[3] == 0 && isnan(row[1].scale));
    x[31] = NAN;
    q8_round_row(row, x, Q8_BLOCK);
    cr_expect(isnan(row[0].scale));
}

/* ---- q4 -------------------------------------------------------------------------------------- */

static double squares_left(enum elem elem, const float *x, int n)
{
    struct q4_1_block block[4];
    float got[4 * Q8_BLOCK];
    double sum = 0;

    memset(block, 0x55, sizeof(block));
    elem_narrow(elem, block, x, n);
    elem_widen(elem, got, block, 0, n);
    for (int i = 0; i < n; i++)
        sum += ((double)got[i] - (double)x[i]) * ((double)got[i] - (double)x[i]);
    for (int i = n; elem == ELEM_Q4 && i % Q8_BLOCK; i++) {
        struct q8_block of;
        elem_block(elem, &of, block, i / Q8_BLOCK);
        cr_expect_eq(of.q[i % Q8_BLOCK], 0);
    }
    return sum;
}

/* By the scale of Q4_0 alone, largest / -8, which is one of those that are tried. */
static double squares_left_of_q4_0(const float *x, int n)
{
    double sum = 0;

    for (int b = 0; b < n; b += Q8_BLOCK) {
        const int end = b + Q8_BLOCK < n ? b + Q8_BLOCK : n;
        double largest = 0;
        for (int i = b; i < end; i++)
            largest = fabs((double)x[i]) > fabs(largest) ? (double)x[i] : largest;
        const double scale = largest / -8;
        for (int i = b; i < end; i++) {
            const double got = scale * fmax(-8, fmin(7, rint((double)x[i] / scale)));
            sum += (got - (double)x[i]) * (got - (double)x[i]);
        }
    }
    return sum;
}

/* The scale is searched: less is left of normal numbers, on average, and never more. */
Test(elem, q4_is_nearer_than_without_a_search)
{
    static const int lengths[] = {1, 31, 32, 33, 100, 128};
    float x[128];
    double all = 0, all_plain = 0;

    for (int seed = 0; seed < 200; seed++) {
        const int n = lengths[seed % 6];
        rng_normal(x, (size_t)n, (uint64_t)seed, 1, 0, ldexpf(1, seed % 40 - 20));
        const double left = squares_left(ELEM_Q4, x, n), plain = squares_left_of_q4_0(x, n);
        double squares = 0; /* whose scale is rounded to float */
        for (int i = 0; i < n; i++)
            squares += (double)x[i] * (double)x[i];
        cr_expect(left <= plain * (1 + 1e-5) + squares * 0x1p-40, "%d: %g, %g", seed, left, plain);
        all += n >= 32 ? log(left) : 0;
        all_plain += n >= 32 ? log(plain) : 0;
    }
    cr_expect_lt(all, all_plain - 0.1 * 200 * 4 / 6, "%g %g", all, all_plain);
}

/* What is 4 bits and a scale already stays so, with its halves in their places. */
Test(elem, q4_of_its_own_numbers)
{
    for (int seed = 0; seed < 100; seed++) {
        float x[Q8_BLOCK];
        struct q4_block block;
        struct q8_block of;
        const float scale = ldexpf(seed % 2 ? 1.37f : -0.71f, seed % 30 - 15);
        const int most = seed % 3 ? 8 : 7; /* the largest is -8 or, in some files, 7 or -7 */
        for (int i = 0; i < Q8_BLOCK; i++)
            x[i] = scale * (float)((seed * 7 + i * 5) % (2 * most) - most);
        x[seed % Q8_BLOCK] = scale * (float)-most;
        elem_narrow(ELEM_Q4, &block, x, Q8_BLOCK);
        elem_block(ELEM_Q4, &of, &block, 0);
        for (int i = 0; i < Q8_BLOCK; i++) {
            const int nibble = i < Q4_BYTES ? block.q[i] & 15 : block.q[i - Q4_BYTES] >> 4;
            cr_assert_eq(of.q[i], nibble - Q4_ZERO);
            cr_assert(fabs((double)(of.scale * (float)of.q[i] - x[i])) <=
                          0x1p-22 * fabs((double)x[i]),
                      "%d: %g for %g", seed, (double)(of.scale * (float)of.q[i]), (double)x[i]);
        }
    }
}

/* ---- q4_1 ------------------------------------------------------------------------------------ */

/* By steps from the least number to the greatest. */
static double squares_left_of_ends(const float *x, int n)
{
    double sum = 0;

    for (int b = 0; b < n; b += Q8_BLOCK) {
        const int end = b + Q8_BLOCK < n ? b + Q8_BLOCK : n;
        double lo = (double)x[b], hi = lo;
        for (int i = b; i < end; i++) {
            lo = fmin(lo, (double)x[i]);
            hi = fmax(hi, (double)x[i]);
        }
        const double step = (hi - lo) / 15;
        for (int i = b; i < end && step > 0; i++) {
            const double got = lo + step * rint(((double)x[i] - lo) / step);
            sum += (got - (double)x[i]) * (got - (double)x[i]);
        }
    }
    return sum;
}

/* Never farther than q4 or than steps between the ends, with or without a shift of the numbers:
 * both are where the search begins. Scale, shift and the numbers they stand for are rounded to
 * float, each by at most 2^-24 of a number. */
Test(elem, q4_1_is_nearer_than_its_beginnings)
{
    static const int lengths[] = {1, 31, 32, 33, 100, 128};
    float x[128];
    double all = 0, all_q4 = 0, all_ends = 0;

    for (int seed = 0; seed < 300; seed++) {
        const int n = lengths[seed % 6];
        const float deviation = ldexpf(1, seed % 40 - 20);
        rng_normal(x, (size_t)n, (uint64_t)seed, 1, 0, deviation);
        double squares = 0;
        for (int i = 0; i < n; i++) {
            x[i] += (float)(seed % 5) * deviation;
            squares += (double)x[i] * (double)x[i];
        }
        const double left = squares_left(ELEM_Q4_1, x, n), q4 = squares_left(ELEM_Q4, x, n);
        const double ends = squares_left_of_ends(x, n), slack = squares * 0x1p-40;
        cr_expect(left <= q4 * (1 + 1e-5) + slack, "%d: %g, %g", seed, left, q4);
        cr_expect(left <= ends * (1 + 1e-5) + slack, "%d: %g, %g", seed, left, ends);
        all += n >= 32 ? log(left) : 0;
        all_q4 += n >= 32 ? log(q4) : 0;
        all_ends += n >= 32 ? log(ends) : 0;
    }
    cr_expect_lt(all, all_q4 - 200);
    cr_expect_lt(all, all_ends - 10);
}

static uint16_t random_half(uint64_t seed, int i)
{
    /* of any sign and fraction, from 2^-10 to 2^-3 */
    const uint32_t bits = (uint32_t)(seed * 2654435761u + (uint32_t)i * 40503u);

    return (uint16_t)((bits >> 31 << 15) | ((bits >> 8 & 7) + 5) << 10 | (bits >> 12 & 1023));
}

/* Blocks of GGUF stay what they are, whatever their scale and least number, of q from any to any. */
Test(elem, blocks_of_gguf_stay_what_they_are)
{
    static const struct {
        enum dtype from;
        enum elem to;
        int scales;
    } kinds[] = {{DTYPE_Q4_1, ELEM_Q4_1, 2}, {DTYPE_Q4_0, ELEM_Q4, 1}, {DTYPE_Q8_0, ELEM_Q8, 1}};

    for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
        for (int seed = 0; seed < 2000; seed++) {
            unsigned char bytes[4 + Q8_BLOCK];
            struct q4_1_block block[2];
            float x[Q8_BLOCK], got[Q8_BLOCK];
            unsigned char *const q = bytes + 2 * kinds[k].scales;
            for (int s = 0; s < kinds[k].scales; s++)
                memcpy(bytes + 2 * s, &(uint16_t){random_half((uint64_t)seed, s)}, 2);
            for (int i = 0; i < Q8_BLOCK; i++)
                q[i] = (unsigned char)random_half((uint64_t)seed, 7 + i);
            if (kinds[k].from == DTYPE_Q8_0)
                q[seed % Q8_BLOCK] = 127, q[(seed + 1) % Q8_BLOCK] &= 127;
            if (kinds[k].from == DTYPE_Q4_0)
                q[seed % Q4_BYTES] &= 0xf0; /* -8, as its program always has */
            for (int i = 0; kinds[k].from == DTYPE_Q8_0 && i < Q8_BLOCK; i++)
                q[i] = q[i] == 128 ? 0 : q[i]; /* nor is there a -128 */
            for (int i = 0; kinds[k].from == DTYPE_Q4_1 && seed % 2 && i < Q4_BYTES; i++)
                q[i] = (unsigned char)((q[i] & 0x33) + 0x11 * (seed % 12)); /* few of 16 steps */
            const struct tensor t = {.dtype = kinds[k].from, .n = Q8_BLOCK, .data = bytes};
            tensor_floats(x, &t, 0, Q8_BLOCK);
            elem_narrow(kinds[k].to, block, x, Q8_BLOCK);
            elem_widen(kinds[k].to, got, block, 0, Q8_BLOCK);
            for (int i = 0; i < Q8_BLOCK; i++)
                cr_assert_eq(got[i], x[i], "%s, %d: %a for %a", elem_name[kinds[k].to], seed,
                             (double)got[i], (double)x[i]);
        }
}

/* A step that would be subnormal is 0; one number that is not finite leaves none of its block. */
Test(elem, blocks_of_equal_numbers_and_of_what_is_not_finite)
{
    static const struct {
        enum elem elem;
        float tiny;
    } cases[] = {{ELEM_Q8, FLT_MIN}, {ELEM_Q4, FLT_MIN}, {ELEM_Q4_1, FLT_MIN / 2}};
    enum { N = 4 * Q8_BLOCK };

    for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
        float x[N] = {[3] = cases[k].tiny, [2 * Q8_BLOCK + 9] = INFINITY, [N - 1] = NAN}, got[N];
        unsigned char blocks[4 * sizeof(struct q8_block)];
        for (int i = Q8_BLOCK; i < 2 * Q8_BLOCK; i++)
            x[i] = 0.1f;
        elem_narrow(cases[k].elem, blocks, x, N);
        elem_widen(cases[k].elem, got, blocks, 0, N);
        for (int i = 0; i < Q8_BLOCK; i++)
            cr_expect(got[i] == 0 && fabsf(got[Q8_BLOCK + i] - 0.1f) <= 0x1p-24f &&
                          (cases[k].elem != ELEM_Q4_1 || got[Q8_BLOCK + i] == 0.1f) &&
                          isnan(got[2 * Q8_BLOCK + i]) && isnan(got[3 * Q8_BLOCK + i]),
                      "%s: %d", elem_name[cases[k].elem], i);
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

Test(elem, rows_have_their_bytes)
{
    NUMBERS({elem_row_bytes(ELEM_F32, 33), 132}, {elem_row_bytes(ELEM_BF16, 33), 66},
            {elem_row_bytes(ELEM_Q8, 32), 36}, {elem_row_bytes(ELEM_Q8, 33), 72},
            {elem_row_bytes(ELEM_Q8, 0), 0}, {elem_row_bytes(ELEM_Q4, 32), 20},
            {elem_row_bytes(ELEM_Q4, 33), 40}, {elem_row_bytes(ELEM_Q4_1, 33), 48});
}

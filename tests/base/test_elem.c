/* SPDX-License-Identifier: MIT
 *
 * Element types against their definitions: every bf16 and what lies between two of them, blocks of
 * 8-bit numbers within half a step. */
#include "variants/base/elem.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>

static float of_bits(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

enum { HALVES = 1 << 16, EXPONENT = 0x7f80, INFINITE = 0x7f80 };

/* ---- bf16 ------------------------------------------------------------------------------------ */

Test(elem, bf16_reads_back_what_it_wrote)
{
    for (uint32_t half = 0; half < HALVES; half++) {
        const float x = bf16_float((uint16_t)half);
        const uint32_t again = bf16_of(x);
        if (isnan(x))
            cr_assert_eq(again, half | 0x40, "%04x: %04x", half, again);
        else if ((half & EXPONENT) == 0)
            cr_assert_eq(again, half & 0x8000, "%04x: %04x", half, again);
        else
            cr_assert_eq(again, half, "%04x: %04x", half, again);
    }
}

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
                cr_assert(isnan(bf16_float((uint16_t)got)) && got >> 15 == bits >> 31, "%08x: %04x",
                          bits, got);
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

Test(elem, q8_of_zeros_and_of_what_is_not_finite)
{
    struct q8_block block[2];
    float x[2 * Q8_BLOCK] = {0}, got[2 * Q8_BLOCK];

    x[3] = FLT_MIN; /* its step would be subnormal */
    x[Q8_BLOCK] = 2;
    elem_narrow(ELEM_Q8, block, x, 2 * Q8_BLOCK);
    cr_expect_eq(block[0].scale, 0.0f);
    elem_widen(ELEM_Q8, got, block, 0, 2 * Q8_BLOCK);
    cr_expect_eq(got[3], 0.0f);
    x[5] = NAN;
    x[Q8_BLOCK + 9] = INFINITY;
    elem_narrow(ELEM_Q8, block, x, 2 * Q8_BLOCK);
    elem_widen(ELEM_Q8, got, block, 0, 2 * Q8_BLOCK);
    for (int i = 0; i < 2 * Q8_BLOCK; i++)
        cr_expect(isnan(got[i]));
}

/* ---- rows ------------------------------------------------------------------------------------ */

Test(elem, rows_have_their_bytes)
{
    cr_expect_eq(elem_row_bytes(ELEM_F32, 33), 132);
    cr_expect_eq(elem_row_bytes(ELEM_BF16, 33), 66);
    cr_expect_eq(elem_row_bytes(ELEM_Q8, 32), 36);
    cr_expect_eq(elem_row_bytes(ELEM_Q8, 33), 72);
    cr_expect_eq(elem_row_bytes(ELEM_Q8, 0), 0);
}

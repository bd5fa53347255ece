/* SPDX-License-Identifier: MIT
 *
 * Widening is exact: every half of either format against its definition. */
#include "variants/base/safetensors.h"

#include <criterion/criterion.h>
#include <signal.h>

enum { HALVES = 1 << 16 };

/* sign, exponent bits and fraction bits to the value that IEEE 754 gives them. */
static double half_value(unsigned half, int exponent_bits, int fraction_bits)
{
    const int most = (1 << exponent_bits) - 1, bias = most >> 1;
    const int exponent = (int)(half >> fraction_bits) & most;
    const double fraction = (double)(half & ((1u << fraction_bits) - 1)) / (1 << fraction_bits);
    const double sign = half >> 15 ? -1 : 1;

    if (exponent == most)
        return fraction > 0 ? NAN : sign * INFINITY;
    return sign *
           (exponent == 0 ? ldexp(fraction, 1 - bias) : ldexp(1 + fraction, exponent - bias));
}

static void expect_every_half(enum dtype dtype, int exponent_bits, int fraction_bits)
{
    static unsigned char bytes[2 * HALVES + 1]; /* from an odd address */
    static float got[HALVES];
    const struct tensor t = {
        .dtype = dtype, .rank = 1, .shape = {HALVES}, .n = HALVES, .data = bytes + 1};

    for (unsigned i = 0; i < HALVES; i++) {
        const uint16_t half = (uint16_t)i;
        memcpy(bytes + 1 + 2 * i, &half, 2);
    }
    tensor_floats(got, &t, 0, HALVES);
    for (unsigned i = 0; i < HALVES; i++) {
        const double want = half_value(i, exponent_bits, fraction_bits);
        cr_assert(isnan(want) ? isnan(got[i])
                              : (double)got[i] == want && !signbit(got[i]) == !signbit(want),
                  "%04x: %g, not %g", i, (double)got[i], want);
    }
    float some[2];
    tensor_floats(some, &t, 0x3c00, 2);
    cr_expect_arr_eq(some, got + 0x3c00, sizeof(some));
}

Test(tensor_floats, f16) { expect_every_half(DTYPE_F16, 5, 10); }
Test(tensor_floats, bf16) { expect_every_half(DTYPE_BF16, 8, 7); }

Test(tensor_floats, f32)
{
    unsigned char bytes[13];
    const float values[] = {1.5f, -0.0f, 0x1p-149f};
    const struct tensor t = {.rank = 1, .shape = {3}, .n = 3, .data = bytes + 1};
    float got[2];

    memcpy(bytes + 1, values, sizeof(values));
    tensor_floats(got, &t, 1, 2);
    cr_expect_arr_eq(got, values + 1, sizeof(got));
    tensor_floats(got, &t, 3, 0);
}

Test(tensor_floats, what_is_never_read, .signal = SIGABRT)
{
    const struct tensor t = {.dtype = DTYPE_OTHER, .rank = 1, .shape = {1}, .n = 1, .data = ""};
    float got;

    tensor_floats(&got, &t, 0, 1);
}

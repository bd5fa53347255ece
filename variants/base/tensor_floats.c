/* SPDX-License-Identifier: MIT
 *
 * Numbers of tensors as floats. Each format is a part of float's, so that nothing is rounded. Data
 * may lie at any address: bytes are copied, never read through a wider pointer. */
#include "elem.h"
#include "safetensors.h"

#include <string.h>

/* IEEE binary16: 1 bit of sign, 5 of exponent, 10 of fraction; no exponent: multiples of 2^-24. */
static float from_f16(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half >> 15) << 31, exponent = half >> 10 & 31,
                   fraction = half & 1023;
    const uint32_t bits = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13;
    float x;

    if (exponent == 0)
        return (sign ? -0x1p-24f : 0x1p-24f) * (float)fraction;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

void tensor_floats(float *to, const struct tensor *t, size_t first, size_t n)
{
    const unsigned char *const data = t->data;

    CHECK(first <= t->n && n <= t->n - first);
    CHECK(t->dtype == DTYPE_F32 || t->dtype == DTYPE_F16 || t->dtype == DTYPE_BF16);
    if (n > 0 && t->dtype == DTYPE_F32)
        memcpy(to, data + first * sizeof(float), n * sizeof(float));
    for (size_t i = 0; t->dtype != DTYPE_F32 && i < n; i++) {
        uint16_t half;
        memcpy(&half, data + (first + i) * sizeof(half), sizeof(half));
        to[i] = t->dtype == DTYPE_F16 ? from_f16(half) : bf16_float(half);
    }
}

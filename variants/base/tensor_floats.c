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

/* Blocks of GGUF: a scale, with Q4_1 a least value, both of 16 bits, then the numbers: of 8 bits, or
 * of 4, the lower half of byte i being number i, the upper one number i + 16.
 *
 *   Q8_0  x = scale q             q from -128 to 127
 *   Q4_0  x = scale (q - 8)       q from 0 to 15
 *   Q4_1  x = scale q + least */
enum { BLOCK = 32, HALF = BLOCK / 2, ZERO_OF_4 = 8 };

static const struct form {
    int block, bytes; /* numbers and bytes of a block; 0 = cannot be read */
} forms[] = {
    [DTYPE_F32] = {1, 4},
    [DTYPE_F16] = {1, 2},
    [DTYPE_BF16] = {1, 2},
    [DTYPE_Q8_0] = {BLOCK, 2 + BLOCK},
    [DTYPE_Q4_0] = {BLOCK, 2 + HALF},
    [DTYPE_Q4_1] = {BLOCK, 4 + HALF},
    [DTYPE_OTHER] = {0, 0},
};

bool tensor_is_readable(enum dtype dtype) { return forms[dtype].bytes > 0; }

int tensor_block(enum dtype dtype) { return forms[dtype].block; }

size_t tensor_bytes(enum dtype dtype, size_t n)
{
    const struct form f = forms[dtype];

    return (n + (size_t)f.block - 1) / (size_t)f.block * (size_t)f.bytes;
}

static float from_bytes(const unsigned char *at)
{
    uint16_t half;

    memcpy(&half, at, sizeof(half));
    return from_f16(half);
}

/* Number i of a block. Products and sums are those of the publisher's program, in float. */
static float from_block(enum dtype dtype, const unsigned char *block, size_t i)
{
    const float scale = from_bytes(block);

    if (dtype == DTYPE_Q8_0)
        return scale * (float)(int8_t)block[2 + i];
    const unsigned char *const q = block + (dtype == DTYPE_Q4_1 ? 4 : 2);
    const int x = i < HALF ? q[i] & 15 : q[i - HALF] >> 4;
    return dtype == DTYPE_Q4_0 ? scale * (float)(x - ZERO_OF_4)
                               : scale * (float)x + from_bytes(block + 2);
}

void tensor_floats(float *to, const struct tensor *t, size_t first, size_t n)
{
    const unsigned char *const data = t->data;

    CHECK(first <= t->n && n <= t->n - first);
    CHECK(tensor_is_readable(t->dtype));
    if (n > 0 && t->dtype == DTYPE_F32)
        memcpy(to, data + first * sizeof(float), n * sizeof(float));
    for (size_t i = 0; tensor_block(t->dtype) > 1 && i < n; i++)
        to[i] = from_block(t->dtype, data + tensor_bytes(t->dtype, (first + i) / BLOCK * BLOCK),
                           (first + i) % BLOCK);
    for (size_t i = 0; (t->dtype == DTYPE_F16 || t->dtype == DTYPE_BF16) && i < n; i++) {
        uint16_t half;
        memcpy(&half, data + (first + i) * sizeof(half), sizeof(half));
        to[i] = t->dtype == DTYPE_F16 ? from_f16(half) : bf16_float(half);
    }
}

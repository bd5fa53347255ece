/* SPDX-License-Identifier: MIT
 *
 * See tensor_blocks.h. d and m are of 16 bits, and numbers q of so many bits. Where halves, quarters
 * or eighths of bytes hold numbers, those of the lowest bits of all bytes come first.
 *
 *   Q8_0    x = d q                    32 numbers, q from -128 to 127
 *   Q4_0    x = d (q - 8)
 *   Q4_1    x = d q + m
 *   Q5_0    x = d (q - 16)             the fifth bits of all numbers stand in front
 *   Q5_1    x = d q + m
 *   IQ4_NL  x = d table[q]
 *   MXFP4   x = 2^(e - 127) fp4(q)     e of 8 bits
 *
 * and of 256 numbers, whose parts have scales s and t of few bits:
 *
 *   Q2_K    x = d s q - m t            16 parts; s and t of 4 bits
 *   Q3_K    x = d (s - 32) (q - 4)     16 parts; s of 6 bits
 *   Q4_K    x = d s q - m t            8 parts; s and t of 6 bits
 *   Q5_K    likewise
 *   Q6_K    x = d s (q - 32)           16 parts; s from -128 to 127
 *   IQ4_XS  x = d (s - 32) table[q]    8 parts; s of 6 bits */
#include "tensor_blocks.h"

enum { SMALL = 32, LARGE = 256 };

float half_float(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half >> 15) << 31, exponent = half >> 10 & 31,
                   fraction = half & 1023;
    const uint32_t bits = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13;

    if (exponent == 0) /* multiples of 2^-24 */
        return (sign ? -0x1p-24f : 0x1p-24f) * (float)fraction;
    return float_of_bits(bits);
}

static float half_at(const unsigned char *at) { return half_float((uint16_t)(at[0] | at[1] << 8)); }

/* Number i of halves of `bytes` bytes at a time, or of quarters. */
static int of_halves(const unsigned char *q, int i, int bytes)
{
    const int group = i / (2 * bytes), within = i % (2 * bytes);

    return q[group * bytes + within % bytes] >> 4 * (within / bytes) & 15;
}

static int of_quarters(const unsigned char *q, int i, int bytes)
{
    const int group = i / (4 * bytes), within = i % (4 * bytes);

    return q[group * bytes + within % bytes] >> 2 * (within / bytes) & 3;
}

/* ---- of 32 numbers ------------------------------------------------------------------------ */

static void q8_0(float *to, const unsigned char *block)
{
    const float d = half_at(block);

    for (int i = 0; i < SMALL; i++)
        to[i] = d * (float)(int8_t)block[2 + i];
}

/* Five bits: the fifth ones first. */
static int of_five(const unsigned char *q, int i)
{
    return of_halves(q + 4, i, SMALL / 2) | (q[i / 8] >> i % 8 & 1) << 4;
}

/* Of four bits or five: d times numbers less half of what there are, or times numbers, plus m. */
static void of_bits(float *to, const unsigned char *block, bool five, bool shifted)
{
    const float d = half_at(block), m = shifted ? half_at(block + 2) : 0;
    const unsigned char *const q = block + (shifted ? 4 : 2);
    const int zero = shifted ? 0 : five ? 16 : 8;

    for (int i = 0; i < SMALL; i++) {
        const float x = d * (float)((five ? of_five(q, i) : of_halves(q, i, SMALL / 2)) - zero);
        to[i] = shifted ? x + m : x;
    }
}

static void q4_0(float *to, const unsigned char *block) { of_bits(to, block, false, false); }
static void q4_1(float *to, const unsigned char *block) { of_bits(to, block, false, true); }
static void q5_0(float *to, const unsigned char *block) { of_bits(to, block, true, false); }
static void q5_1(float *to, const unsigned char *block) { of_bits(to, block, true, true); }

static const int8_t table[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                 1,    13,   25,  38,  53,  69,  89,  113};

static void iq4_nl(float *to, const unsigned char *block)
{
    const float d = half_at(block);

    for (int i = 0; i < SMALL; i++)
        to[i] = d * (float)table[of_halves(block + 2, i, SMALL / 2)];
}

const float fp4_number[16] = {0,     0.5f,  1,  1.5f,  2,  3,  4,  6,
                              -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};

static void mxfp4(float *to, const unsigned char *block)
{
    for (int i = 0; i < SMALL; i++)
        to[i] = ldexpf(fp4_number[of_halves(block + 1, i, SMALL / 2)], block[0] - 127);
}

/* ---- of 256 numbers ----------------------------------------------------------------------- */

static void q2_k(float *to, const unsigned char *block)
{
    const unsigned char *const scales = block, *const q = block + 16;
    const float d = half_at(block + 80), m = half_at(block + 82);

    for (int i = 0; i < LARGE; i++) {
        const float s = d * (float)(scales[i / 16] & 15), t = m * (float)(scales[i / 16] >> 4);
        to[i] = s * (float)of_quarters(q, i, 32) - t;
    }
}

static void q3_k(float *to, const unsigned char *block)
{
    const unsigned char *const high = block, *const q = block + 32, *const scales = block + 96;
    const float d = half_at(block + 108);

    for (int i = 0; i < LARGE; i++) {
        const int part = i / 16, low = scales[part % 8] >> 4 * (part / 8) & 15;
        const int s = (low | (scales[8 + part % 4] >> 2 * (part / 4) & 3) << 4) - 32;
        const int of_four = high[i % 32] >> i / 32 & 1 ? 0 : 4;
        to[i] = d * (float)s * (float)(of_quarters(q, i, 32) - of_four);
    }
}

/* Two numbers of 6 bits for each of 8 parts, in 12 bytes. */
static void pair_of(const unsigned char *at, int part, int *s, int *t)
{
    if (part < 4) {
        *s = at[part] & 63;
        *t = at[4 + part] & 63;
        return;
    }
    *s = (at[4 + part] & 15) | (at[part - 4] >> 6) << 4;
    *t = at[4 + part] >> 4 | (at[part] >> 6) << 4;
}

/* Four bits of each number, and maybe a fifth. */
static void of_pairs(float *to, const unsigned char *block, const unsigned char *q,
                     const unsigned char *fifth)
{
    const float d = half_at(block), m = half_at(block + 2);

    for (int part = 0; part < 8; part++) {
        int s, t;
        pair_of(block + 4, part, &s, &t);
        const float scale = d * (float)s, shift = m * (float)t;
        for (int k = 0, i = 32 * part; k < 32; k++, i++) {
            const int x = of_halves(q, i, 32) | (fifth ? (fifth[k] >> part & 1) << 4 : 0);
            to[i] = scale * (float)x - shift;
        }
    }
}

static void q4_k(float *to, const unsigned char *block) { of_pairs(to, block, block + 16, NULL); }

static void q5_k(float *to, const unsigned char *block)
{
    of_pairs(to, block, block + 48, block + 16);
}

static void q6_k(float *to, const unsigned char *block)
{
    const unsigned char *const low = block, *const high = block + 128, *const scales = block + 192;
    const float d = half_at(block + 208);

    for (int i = 0; i < LARGE; i++) {
        const float s = d * (float)(int8_t)scales[i / 16];
        to[i] = s * (float)((of_halves(low, i, 64) | of_quarters(high, i, 32) << 4) - 32);
    }
}

static void iq4_xs(float *to, const unsigned char *block)
{
    const unsigned char *const low = block + 4, *const q = block + 8;
    const float d = half_at(block);
    const int high = block[2] | block[3] << 8;

    for (int i = 0; i < LARGE; i++) {
        const int part = i / 32, four = low[part / 2] >> 4 * (part % 2) & 15;
        const float s = d * (float)((four | (high >> 2 * part & 3) << 4) - 32);
        to[i] = s * (float)table[of_halves(q, i, 16)];
    }
}

const struct tensor_blocks *tensor_blocks_of(enum dtype dtype)
{
    static const struct tensor_blocks all[DTYPE_OTHER] = {
        [DTYPE_Q8_0] = {SMALL, 34, q8_0},      [DTYPE_Q4_0] = {SMALL, 18, q4_0},
        [DTYPE_Q4_1] = {SMALL, 20, q4_1},      [DTYPE_Q5_0] = {SMALL, 22, q5_0},
        [DTYPE_Q5_1] = {SMALL, 24, q5_1},      [DTYPE_IQ4_NL] = {SMALL, 18, iq4_nl},
        [DTYPE_MXFP4] = {SMALL, 17, mxfp4},    [DTYPE_Q2_K] = {LARGE, 84, q2_k},
        [DTYPE_Q3_K] = {LARGE, 110, q3_k},     [DTYPE_Q4_K] = {LARGE, 144, q4_k},
        [DTYPE_Q5_K] = {LARGE, 176, q5_k},     [DTYPE_Q6_K] = {LARGE, 210, q6_k},
        [DTYPE_IQ4_XS] = {LARGE, 136, iq4_xs},
    };

    return dtype < DTYPE_OTHER && all[dtype].widen ? &all[dtype] : NULL;
}

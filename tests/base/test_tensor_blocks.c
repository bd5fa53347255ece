/* SPDX-License-Identifier: MIT
 *
 * Blocks of GGUF: any part of a row is what it is in the whole; each bit of a block is of the field that
 * the format says (ggml, ggml-common.h). */
#include "variants/base/tensor_blocks.h"

#include "variants/base/rng.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

enum { BLOCKS = 3, MOST_BYTES = 210 };

Test(tensor_blocks, parts_of_rows)
{
    int types = 0;

    for (int type = 0; type < DTYPE_OTHER; type++) {
        const struct tensor_blocks *const f = tensor_blocks_of((enum dtype)type);
        unsigned char bytes[BLOCKS * MOST_BYTES];
        float whole[BLOCKS * MOST_IN_BLOCK], part[BLOCKS * MOST_IN_BLOCK];
        if (!f)
            continue;
        types++;
        cr_assert(f->bytes <= MOST_BYTES && f->numbers <= MOST_IN_BLOCK);
        for (size_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = (unsigned char)(256 * rng_uniform(7, (uint64_t)type, i));
        const size_t n = (size_t)(BLOCKS * f->numbers);
        const struct tensor t = {.dtype = (enum dtype)type, .n = n, .data = bytes};
        cr_expect_eq(tensor_block(t.dtype), f->numbers);
        cr_expect_eq(tensor_bytes(t.dtype, n), (size_t)(BLOCKS * f->bytes));
        tensor_floats(whole, &t, 0, n);
        for (size_t first = 0; first < n; first += 13)
            for (size_t length = 0; length <= n - first; length += 29) {
                tensor_floats(part, &t, first, length);
                cr_assert(length == 0 || memcmp(part, whole + first, length * sizeof(*part)) == 0,
                          "type %d, %zu from %zu", type, length, first);
            }
    }
    cr_expect_eq(types, 13);
}

/* Of MXFP4: powers of two from the least to the greatest, times the numbers of E2M1. */
Test(tensor_blocks, mxfp4)
{
    static const double fp4[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    static const int exponents[] = {0, 1, 127, 128, 250};
    float x[MOST_IN_BLOCK];

    for (size_t k = 0; k < ARRAY_LEN(exponents); k++) {
        unsigned char bytes[17] = {(unsigned char)exponents[k]};
        for (int i = 0; i < 16; i++)
            bytes[1 + i] = (unsigned char)(i | (15 - i) << 4);
        tensor_blocks_of(DTYPE_MXFP4)->widen(x, bytes);
        for (int i = 0; i < 32; i++) {
            const int q = i < 16 ? i : 31 - i;
            cr_expect_eq((double)x[i], (q < 8 ? 1 : -1) * ldexp(fp4[q % 8], exponents[k] - 127));
        }
    }
}

/* ---- bit by bit --------------------------------------------------------------------------- */

/* What a block says, of raw whole numbers. */
struct said {
    int d, m;             /* halves; MXFP4 has an exponent in place of d */
    int q[MOST_IN_BLOCK]; /* numbers */
    int s[16], t[16];     /* scales and shifts of parts */
};

typedef void put_fn(struct said *to, int byte, int bit);

/* Bit b of byte k of two numbers a byte, of which `bytes` bytes have 2 * bytes in two halves. */
static void put_half(int *q, int k, int b, int bytes)
{
    q[2 * bytes * (k / bytes) + bytes * (b / 4) + k % bytes] += 1 << b % 4;
}

/* Of two bits of four numbers a byte, times `weight`. */
static void put_quarter(int *q, int k, int b, int weight)
{
    q[128 * (k / 32) + 32 * (b / 2) + k % 32] += weight << b % 2;
}

static void put_two(int *to, int k, int b) { *to |= 1 << (8 * k + b); }
static int of_sign(int b) { return b == 7 ? -128 : 1 << b; }

static void put_q8_0(struct said *to, int k, int b)
{
    if (k < 2)
        put_two(&to->d, k, b);
    else
        to->q[k - 2] += of_sign(b);
}

static void put_q4_0(struct said *to, int k, int b)
{
    if (k < 2)
        put_two(&to->d, k, b);
    else
        put_half(to->q, k - 2, b, 16);
}

static void put_q4_1(struct said *to, int k, int b)
{
    if (k < 2)
        put_two(&to->d, k, b);
    else if (k < 4)
        put_two(&to->m, k - 2, b);
    else
        put_half(to->q, k - 4, b, 16);
}

static void put_q5_0(struct said *to, int k, int b)
{
    if (k < 2)
        put_two(&to->d, k, b);
    else if (k < 6)
        to->q[8 * (k - 2) + b] += 16;
    else
        put_half(to->q, k - 6, b, 16);
}

static void put_q5_1(struct said *to, int k, int b)
{
    if (k < 4)
        put_two(k < 2 ? &to->d : &to->m, k % 2, b);
    else if (k < 8)
        to->q[8 * (k - 4) + b] += 16;
    else
        put_half(to->q, k - 8, b, 16);
}

static void put_mxfp4(struct said *to, int k, int b)
{
    if (k < 1)
        put_two(&to->d, k, b);
    else
        put_half(to->q, k - 1, b, 16);
}

static void put_q2_k(struct said *to, int k, int b)
{
    if (k < 16)
        *(b < 4 ? &to->s[k] : &to->t[k]) += 1 << b % 4;
    else if (k < 80)
        put_quarter(to->q, k - 16, b, 1);
    else
        put_two(k < 82 ? &to->d : &to->m, k % 2, b);
}

static void put_q3_k(struct said *to, int k, int b)
{
    if (k < 32)
        to->q[32 * b + k] += 4;
    else if (k < 96)
        put_quarter(to->q, k - 32, b, 1);
    else if (k < 104)
        to->s[k - 96 + 8 * (b / 4)] += 1 << b % 4;
    else if (k < 108)
        to->s[k - 104 + 4 * (b / 2)] += 16 << b % 2;
    else
        put_two(&to->d, k - 108, b);
}

/* d, m and twelve bytes of six bits for each of eight scales and eight shifts. */
static void put_pairs(struct said *to, int k, int b)
{
    if (k < 4)
        put_two(k < 2 ? &to->d : &to->m, k % 2, b);
    else if (k < 8)
        *(b < 6 ? &to->s[k - 4] : &to->s[k]) += b < 6 ? 1 << b : 16 << (b - 6);
    else if (k < 12)
        *(b < 6 ? &to->t[k - 8] : &to->t[k - 4]) += b < 6 ? 1 << b : 16 << (b - 6);
    else
        *(b < 4 ? &to->s[k - 8] : &to->t[k - 8]) += 1 << b % 4;
}

static void put_q4_k(struct said *to, int k, int b)
{
    if (k < 16)
        put_pairs(to, k, b);
    else
        put_half(to->q, k - 16, b, 32);
}

static void put_q5_k(struct said *to, int k, int b)
{
    if (k < 16)
        put_pairs(to, k, b);
    else if (k < 48)
        to->q[32 * b + k - 16] += 16;
    else
        put_half(to->q, k - 48, b, 32);
}

static void put_q6_k(struct said *to, int k, int b)
{
    if (k < 128)
        put_half(to->q, k, b, 64);
    else if (k < 192)
        put_quarter(to->q, k - 128, b, 16);
    else if (k < 208)
        to->s[k - 192] += of_sign(b);
    else
        put_two(&to->d, k - 208, b);
}

static void put_iq4_xs(struct said *to, int k, int b)
{
    if (k < 2)
        put_two(&to->d, k, b);
    else if (k < 4)
        to->s[4 * (k - 2) + b / 2] += 16 << b % 2;
    else if (k < 8)
        to->s[2 * (k - 4) + b / 4] += 1 << b % 4;
    else
        put_half(to->q, k - 8, b, 16);
}

/* x = d (s - s0) value(q - q0) + sign m t; s and t of one part are 1. */
static const struct layout {
    enum dtype dtype;
    put_fn *put;
    int parts, q0, s0, sign;
    const double *values; /* of q; NULL = q itself */
    int d_at, m_at;       /* bytes of d and m; -1 = none */
} layouts[] = {
    {DTYPE_Q8_0, put_q8_0, 1, 0, 0, 0, NULL, 0, -1},
    {DTYPE_Q4_0, put_q4_0, 1, 8, 0, 0, NULL, 0, -1},
    {DTYPE_Q4_1, put_q4_1, 1, 0, 0, 1, NULL, 0, 2},
    {DTYPE_Q5_0, put_q5_0, 1, 16, 0, 0, NULL, 0, -1},
    {DTYPE_Q5_1, put_q5_1, 1, 0, 0, 1, NULL, 0, 2},
    {DTYPE_IQ4_NL, put_q4_0, 1, 0, 0, 0,
     (const double[]){-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}, 0,
     -1},
    {DTYPE_MXFP4, put_mxfp4, 1, 0, 0, 0,
     (const double[]){0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6}, -1, -1},
    {DTYPE_Q2_K, put_q2_k, 16, 0, 0, -1, NULL, 80, 82},
    {DTYPE_Q3_K, put_q3_k, 16, 4, 32, 0, NULL, 108, -1},
    {DTYPE_Q4_K, put_q4_k, 8, 0, 0, -1, NULL, 0, 2},
    {DTYPE_Q5_K, put_q5_k, 8, 0, 0, -1, NULL, 0, 2},
    {DTYPE_Q6_K, put_q6_k, 16, 32, 0, 0, NULL, 208, -1},
    {DTYPE_IQ4_XS, put_iq4_xs, 8, 0, 32, 0,
     (const double[]){-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}, 0,
     -1},
};

static double half_of(int bits)
{
    const double sign = bits >> 15 ? -1 : 1;
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;

    return exponent ? sign * ldexp(1024 + fraction, exponent - 25) : sign * ldexp(fraction, -24);
}

/* The numbers, and how far floats may be from them: d s, its product with q, m t and the sum are
 * rounded once each, by 2^-24 of what they are. */
static void decode(const struct layout *l, const unsigned char *block, double *x, double *bound)
{
    const struct tensor_blocks *const f = tensor_blocks_of(l->dtype);
    struct said said = {.d = 0};

    for (int k = 0; k < f->bytes; k++)
        for (int b = 0; b < 8; b++)
            if (block[k] >> b & 1)
                l->put(&said, k, b);
    for (int i = 0; i < f->numbers; i++) {
        const int part = i * l->parts / f->numbers, q = said.q[i];
        const double d = l->d_at < 0 ? ldexp(1, said.d - 127) : half_of(said.d);
        const double s = l->parts > 1 ? said.s[part] - l->s0 : 1;
        const double t = l->parts > 1 ? said.t[part] : 1;
        const double one = d * s * (l->values ? l->values[q] : q - l->q0);
        const double other = l->sign * half_of(said.m) * t;
        x[i] = l->sign ? one + other : one; /* zeros keep their sign */
        bound[i] = 4 * 0x1p-24 * (fabs(one) + fabs(other));
    }
}

/* Each bit of a block of any bits is turned: all numbers are what their bits say, and some differ. Halves
 * have exponent 11, from which no bit leads to infinity; the exponent of MXFP4 is 120. */
Test(tensor_blocks, every_bit)
{
    int types = 0;

    for (size_t k = 0; k < ARRAY_LEN(layouts); k++, types++) {
        const struct layout *const l = &layouts[k];
        const struct tensor_blocks *const f = tensor_blocks_of(l->dtype);
        unsigned char block[MOST_BYTES];
        double was[MOST_IN_BLOCK], x[MOST_IN_BLOCK], bound[MOST_IN_BLOCK];
        float got[MOST_IN_BLOCK];
        for (int i = 0; i < f->bytes; i++)
            block[i] = (unsigned char)(256 * rng_uniform(9, k, (uint64_t)i));
        for (int i = 0; i < 2; i++) {
            const int at = i == 0 ? l->d_at : l->m_at;
            if (at >= 0)
                block[at + 1] = (unsigned char)((block[at + 1] & 0x83) | 11 << 2);
        }
        if (l->d_at < 0)
            block[0] = 120;
        decode(l, block, was, bound);
        for (int bit = -1; bit < 8 * f->bytes; bit++) {
            unsigned char turned[MOST_BYTES];
            bool differs = bit < 0;
            memcpy(turned, block, sizeof(turned));
            if (bit >= 0)
                turned[bit / 8] = (unsigned char)(turned[bit / 8] ^ 1 << bit % 8);
            decode(l, turned, x, bound);
            f->widen(got, turned);
            for (int i = 0; i < f->numbers; i++) {
                differs = differs || x[i] != was[i] || signbit(x[i]) != signbit(was[i]);
                cr_assert(fabs((double)got[i] - x[i]) <= bound[i],
                          "type %d, bit %d: number %d is %.9g, not %.9g", l->dtype, bit, i,
                          (double)got[i], x[i]);
            }
            cr_assert(differs, "type %d: bit %d does nothing", l->dtype, bit);
        }
    }
    cr_expect_eq(types, 13);
}

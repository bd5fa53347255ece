/* SPDX-License-Identifier: MIT
 *
 * Blocks of GGUF: any part of a row is what it is in the whole; each bit of a block is of the field that
 * the format says (ggml, ggml-common.h). */
#include "variants/base/tensor_blocks.h"

#include "variants/base/rng.h"

#include <criterion/criterion.h>

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
    static const double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    static const int exponents[] = {0, 1, 127, 128, 250};
    float x[MOST_IN_BLOCK];

    for (size_t k = 0; k < ARRAY_LEN(exponents); k++) {
        unsigned char bytes[17] = {(unsigned char)exponents[k]};
        for (int i = 0; i < 16; i++)
            bytes[1 + i] = (unsigned char)(i | (15 - i) << 4);
        tensor_blocks_of(DTYPE_MXFP4)->widen(x, bytes);
        for (int i = 0; i < 32; i++) {
            const int q = i < 16 ? i : 31 - i;
            cr_expect_eq((double)x[i], (q < 8 ? 1 : -1) * ldexp(values[q % 8], exponents[k] - 127));
        }
    }
}

/* ---- bit by bit --------------------------------------------------------------------------- */

enum { SHIFTS = 16 };

/* What a block says, of raw whole numbers. */
struct said {
    int d, m;             /* halves; MXFP4 has an exponent in place of d */
    int q[MOST_IN_BLOCK]; /* numbers */
    int s[2 * SHIFTS];    /* scales of parts, behind them shifts */
};

/* A field ends before byte END. Bit b of its byte k, of BITS bits for each number, is worth UNIT << b % BITS
 * (the highest of 8 is a sign) in number EACH (k / RUN) + k % RUN + APART (b / BITS). D and M are of bytes,
 * PAIRS twelve bytes of six bits for each of eight scales and eight shifts. */
enum { END, TO, RUN, EACH, APART, BITS, UNIT, OF_FIELD };
enum { D = 1, M, Q, S, PAIRS };

static void put_pairs(struct said *to, int k, int b)
{
    int *const of = k < 4 ? to->s : to->s + SHIFTS;

    if (k < 8)
        of[k % 4 + (b < 6 ? 0 : 4)] += b < 6 ? 1 << b : 16 << (b - 6);
    else
        to->s[k - 4 + (b < 4 ? 0 : SHIFTS)] += 1 << b % 4;
}

static void put_bit(struct said *to, const int *f, int k, int b)
{
    if (f[TO] == D || f[TO] == M) {
        *(f[TO] == D ? &to->d : &to->m) |= 1 << (8 * k + b);
    } else if (f[TO] == PAIRS) {
        put_pairs(to, k, b);
    } else {
        const int at = f[EACH] * (k / f[RUN]) + k % f[RUN] + f[APART] * (b / f[BITS]);
        (f[TO] == Q ? to->q : to->s)[at] += b == 7 && f[BITS] == 8 ? -128 : f[UNIT] << b % f[BITS];
    }
}

static const double iq4[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                             1,    13,   25,  38,  53,  69,  89,  113};
static const double fp4[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6};

/* x = d (s - s0) value(q - q0) + sign m t; s and t of one part are 1. */
enum { PARTS, Q0, S0, SIGN, OF_SUM };
static const struct layout {
    enum dtype dtype;
    int sum[OF_SUM];
    const double *values; /* of q; NULL = q itself */
    int fields[5][OF_FIELD];
} layouts[] = {
    {DTYPE_Q8_0, {1}, NULL, {{2, D}, {34, Q, 1, 1, 0, 8, 1}}},
    {DTYPE_Q4_0, {1, 8}, NULL, {{2, D}, {18, Q, 16, 32, 16, 4, 1}}},
    {DTYPE_Q4_1, {1, 0, 0, 1}, NULL, {{2, D}, {4, M}, {20, Q, 16, 32, 16, 4, 1}}},
    {DTYPE_Q5_0, {1, 16}, NULL, {{2, D}, {6, Q, 1, 8, 1, 1, 16}, {22, Q, 16, 32, 16, 4, 1}}},
    {DTYPE_Q5_1,
     {1, 0, 0, 1},
     NULL,
     {{2, D}, {4, M}, {8, Q, 1, 8, 1, 1, 16}, {24, Q, 16, 32, 16, 4, 1}}},
    {DTYPE_IQ4_NL, {1}, iq4, {{2, D}, {18, Q, 16, 32, 16, 4, 1}}},
    {DTYPE_MXFP4, {1}, fp4, {{1, D}, {17, Q, 16, 32, 16, 4, 1}}},
    {DTYPE_Q2_K,
     {16, 0, 0, -1},
     NULL,
     {{16, S, 16, 0, SHIFTS, 4, 1}, {80, Q, 32, 128, 32, 2, 1}, {82, D}, {84, M}}},
    {DTYPE_Q3_K,
     {16, 4, 32},
     NULL,
     {{32, Q, 32, 0, 32, 1, 4},
      {96, Q, 32, 128, 32, 2, 1},
      {104, S, 8, 0, 8, 4, 1},
      {108, S, 4, 0, 4, 2, 16},
      {110, D}}},
    {DTYPE_Q4_K, {8, 0, 0, -1}, NULL, {{2, D}, {4, M}, {16, PAIRS}, {144, Q, 32, 64, 32, 4, 1}}},
    {DTYPE_Q5_K,
     {8, 0, 0, -1},
     NULL,
     {{2, D}, {4, M}, {16, PAIRS}, {48, Q, 32, 0, 32, 1, 16}, {176, Q, 32, 64, 32, 4, 1}}},
    {DTYPE_Q6_K,
     {16, 32},
     NULL,
     {{128, Q, 64, 128, 64, 4, 1},
      {192, Q, 32, 128, 32, 2, 16},
      {208, S, 1, 1, 0, 8, 1},
      {210, D}}},
    {DTYPE_IQ4_XS,
     {8, 0, 32},
     iq4,
     {{2, D}, {4, S, 1, 4, 1, 2, 16}, {8, S, 1, 2, 1, 4, 1}, {136, Q, 16, 32, 16, 4, 1}}},
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

    for (int k = 0, first = 0, n = 0; k < f->bytes; k++) {
        if (k == l->fields[n][END])
            first = l->fields[n++][END];
        for (int b = 0; b < 8; b++)
            if (block[k] >> b & 1)
                put_bit(&said, l->fields[n], k - first, b);
    }
    for (int i = 0; i < f->numbers; i++) {
        const int part = i * l->sum[PARTS] / f->numbers, q = said.q[i];
        const double d = l->dtype == DTYPE_MXFP4 ? ldexp(1, said.d - 127) : half_of(said.d);
        const double s = l->sum[PARTS] > 1 ? said.s[part] - l->sum[S0] : 1;
        const double t = l->sum[PARTS] > 1 ? said.s[SHIFTS + part] : 1;
        const double one = d * s * (l->values ? l->values[q] : q - l->sum[Q0]);
        const double other = l->sum[SIGN] * half_of(said.m) * t;
        x[i] = l->sum[SIGN] ? one + other : one; /* zeros keep their sign */
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
        for (int i = 0, first = 0; i < 5; first = l->fields[i++][END])
            if (l->fields[i][TO] == D || l->fields[i][TO] == M)
                block[first + 1] = (unsigned char)((block[first + 1] & 0x83) | 11 << 2);
        if (l->dtype == DTYPE_MXFP4)
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

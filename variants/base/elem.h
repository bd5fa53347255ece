/* SPDX-License-Identifier: MIT
 *
 * Element types of stored numbers, and the one home of their rounding.
 *
 * Rows of a matrix are stored one after the other, each of elem_row_bytes(). Rows of heads, of
 * cached keys and values, have in q8 one scale for each head of a row: words of 4 bytes, the scale
 * first, then the int8s, filled up with zeros.
 *
 *   f32   float
 *   bf16  the upper half of a float. Rounded to nearest, ties to even; a subnormal becomes a zero
 *         of its sign, a NaN stays one (quiet), as vcvtneps2bf16 does it.
 *   q8    blocks of 32 numbers along a row, each an int8 times the block's scale, a float:
 *
 *           scale = max|x| / 127
 *           q     = x / scale to nearest, ties to even
 *
 *   q4    likewise from -8 to 7, in half a byte each. The scale is the one of 17 candidates around
 *         the largest number / -8, refined, whose numbers are nearest in the sum of squares:
 *
 *           q     = x (-t / largest) to nearest, within [-8, 7], for t = 7, 7.125, .. 9
 *           scale = sum x q / sum q^2
 *
 *         so numbers that are a scale times such q already, as those of Q4_0 are, stay what they
 *         are but for the scale's last bits.
 *
 *   q4_1  as q4, plus a number of the block, the shift:
 *
 *           x = scale q + shift   rounded once
 *
 *         with scale and shift by least squares for the q that are nearest, which are taken anew
 *         for these, a few times, from the least and the greatest number and from q4's scale on;
 *         the best counts. Numbers that lie on 16 steps already, as those of Q4_1 do, stay exactly
 *         what they are (Q4_1's least number is shift - 8 scale).
 *
 * The last block is filled up with zeros, of q4_1 with any numbers. The number that a q stands for
 * is scale q, rounded to float. Where a block holds what is not finite, all of its numbers are
 * NaN. */
#pragma once

#include "base.h"

enum elem { ELEM_F32, ELEM_BF16, ELEM_Q8, ELEM_Q4, ELEM_Q4_1, ELEM_COUNT };
extern const char *const elem_name[ELEM_COUNT + 1]; /* "f32" .. "q4_1" NULL */
extern const char
    *const kv_elem_name[]; /* those that cached keys and values have, NULL at the end */

/* What rows are rounded to before weights multiply them: nothing beyond what the type of the weights
 * asks for, or q8, with weights in blocks. */
enum row_elem { ROWS_F32, ROWS_Q8, ROW_ELEM_COUNT };
extern const char *const row_elem_name[ROW_ELEM_COUNT + 1]; /* "f32" "q8" NULL */

/* Is it stored in blocks of 32 with a scale? */
static inline bool elem_in_blocks(enum elem elem) { return elem >= ELEM_Q8; }

enum { Q8_BLOCK = 32 };
struct q8_block {
    float scale;
    int8_t q[Q8_BLOCK];
};
_Static_assert(sizeof(struct q8_block) == sizeof(float) + Q8_BLOCK, "no padding");
/* q + 8: number i of the first half in the lower bits of byte i, of the second in the upper. */
enum { Q4_ZERO = 8, Q4_BYTES = Q8_BLOCK / 2 };
struct q4_block {
    float scale;
    uint8_t q[Q4_BYTES];
};
_Static_assert(sizeof(struct q4_block) == sizeof(float) + Q4_BYTES, "no padding");
struct q4_1_block {
    struct q4_block of;
    float shift;
};
_Static_assert(sizeof(struct q4_1_block) == 2 * sizeof(float) + Q4_BYTES, "no padding");

size_t elem_row_bytes(enum elem elem, int n); /* of n numbers */

/* A row of n numbers in that type. */
void elem_narrow(enum elem elem, void *row, const float *x, int n);

/* Numbers [first, first + n) of such a row. */
void elem_widen(enum elem elem, float *x, const void *row, int first, int n);

/* Block b of a row that is stored in blocks, as integers and their scale, and what is added. */
void elem_block(enum elem elem, struct q8_block *to, const void *row, int b);
static inline float elem_shift(enum elem elem, const void *row, int b)
{
    return elem == ELEM_Q4_1 ? ((const struct q4_1_block *)row)[b].shift : 0;
}

/* Block b of a row of q4 or q4_1, without what is added. */
static inline const struct q4_block *q4_at(enum elem elem, const void *row, int b)
{
    return elem == ELEM_Q4_1 ? &((const struct q4_1_block *)row)[b].of
                             : (const struct q4_block *)row + b;
}

/* A row of n numbers that is rounded to q8 to be multiplied: in floats, as vectors do it,
 *   q = x (127 / max|x|) to nearest, ties to even */
void q8_round_row(struct q8_block *row, const float *x, int n);

/* Bytes of a row of heads of n numbers, whole words, and such a row in that type. */
size_t elem_heads_bytes(enum elem elem, int heads, int n);
void elem_heads_narrow(enum elem elem, void *row, const float *x, int heads, int n);

/* Of a head of n numbers in q8: its words, and number e. */
static inline ptrdiff_t q8_head_words(int n) { return 1 + (n + 3) / 4; }
static inline float q8_head_scale(const uint32_t *head) { return float_of_bits(*head); }
static inline const int8_t *q8_head_numbers(const uint32_t *head)
{
    return (const int8_t *)(const void *)(head + 1);
}
static inline float q8_head_number(const uint32_t *head, int e)
{
    return q8_head_scale(head) * (float)q8_head_numbers(head)[e];
}

/* n floats to the nearest numbers of bf16, in place. */
void bf16_round(float *x, size_t n);

static inline float bf16_float(uint16_t half) { return float_of_bits((uint32_t)half << 16); }

/* Without branches, so that compilers make vectors of it. */
static inline uint16_t bf16_of(float x)
{
    const uint32_t exponent = 0x7f800000, bits = bits_of_float(x);
    uint32_t to = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    to = (bits & exponent) == 0 ? bits >> 16 & 0x8000 : to;
    to = (bits & 0x7fffffff) > exponent ? bits >> 16 | 0x40 : to;
    return (uint16_t)to;
}

/* SPDX-License-Identifier: MIT
 *
 * Rows of numbers to and from their element type. */
#include "elem.h"

#include <float.h>
#include <math.h>

const char *const elem_name[ELEM_COUNT + 1] = {"f32", "bf16", "q8"};

static int blocks(int n) { return (n + Q8_BLOCK - 1) / Q8_BLOCK; }

size_t elem_row_bytes(enum elem elem, int n)
{
    return elem == ELEM_Q8     ? (size_t)blocks(n) * sizeof(struct q8_block)
           : elem == ELEM_BF16 ? (size_t)n * sizeof(uint16_t)
                               : (size_t)n * sizeof(float);
}

/* A scale below the normal numbers would be flushed to zero by the kernels: it is zero here. */
static void quantise(struct q8_block *to, const float *x, int n)
{
    float largest = 0;

    memset(to, 0, sizeof(*to));
    for (int i = 0; i < n; i++) {
        const float size = fabsf(x[i]);
        if (!(size <= FLT_MAX)) {
            to->scale = NAN;
            return;
        }
        largest = fmaxf(largest, size);
    }
    to->scale = largest / 127;
    if (to->scale < FLT_MIN)
        to->scale = 0;
    for (int i = 0; to->scale != 0 && i < n; i++)
        to->q[i] = (int8_t)lrint((double)x[i] / (double)to->scale);
}

void elem_narrow(enum elem elem, void *row, const float *x, int n)
{
    uint16_t *const half = row;
    struct q8_block *const block = row;

    if (elem == ELEM_F32)
        memcpy(row, x, (size_t)n * sizeof(*x));
    for (int i = 0; elem == ELEM_BF16 && i < n; i++)
        half[i] = bf16_of(x[i]);
    for (int b = 0; elem == ELEM_Q8 && b < blocks(n); b++)
        quantise(&block[b], x + b * Q8_BLOCK, min_int(Q8_BLOCK, n - b * Q8_BLOCK));
}

void elem_widen(enum elem elem, float *x, const void *row, int first, int n)
{
    const uint16_t *const half = row;
    const struct q8_block *const block = row;

    if (elem == ELEM_F32)
        memcpy(x, (const float *)row + first, (size_t)n * sizeof(*x));
    for (int i = 0; elem == ELEM_BF16 && i < n; i++)
        x[i] = bf16_float(half[first + i]);
    for (int i = 0; elem == ELEM_Q8 && i < n; i++) {
        const struct q8_block *const of = &block[(first + i) / Q8_BLOCK];
        x[i] = of->scale * (float)of->q[(first + i) % Q8_BLOCK];
    }
}

void bf16_round(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = bf16_float(bf16_of(x[i]));
}

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

/* n numbers as q; returns their scale. A scale below the normal numbers would be flushed to zero by
 * the kernels: it is zero here. */
static float quantise(int8_t *q, const float *x, int n)
{
    float largest = 0;

    memset(q, 0, (size_t)n);
    for (int i = 0; i < n; i++) {
        const float size = fabsf(x[i]);
        if (!(size <= FLT_MAX))
            return NAN;
        largest = fmaxf(largest, size);
    }
    const float scale = largest / 127;
    if (scale < FLT_MIN)
        return 0;
    for (int i = 0; i < n; i++)
        q[i] = (int8_t)lrint((double)x[i] / (double)scale);
    return scale;
}

static void quantise_block(struct q8_block *to, const float *x, int n)
{
    memset(to, 0, sizeof(*to));
    to->scale = quantise(to->q, x, n);
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
        quantise_block(&block[b], x + b * Q8_BLOCK, min_int(Q8_BLOCK, n - b * Q8_BLOCK));
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

size_t elem_heads_bytes(enum elem elem, int heads, int n)
{
    return elem == ELEM_Q8 ? (size_t)heads * (size_t)q8_head_words(n) * sizeof(uint32_t)
                           : round_up(elem_row_bytes(elem, heads * n), sizeof(uint32_t));
}

void elem_heads_narrow(enum elem elem, void *row, const float *x, int heads, int n)
{
    uint32_t *head = row;

    if (elem != ELEM_Q8) {
        elem_narrow(elem, row, x, heads * n);
        return;
    }
    for (int h = 0; h < heads; h++, head += q8_head_words(n), x += n) {
        head[q8_head_words(n) - 1] = 0; /* what fills the last word */
        const float scale = quantise((int8_t *)(void *)(head + 1), x, n);
        memcpy(head, &scale, sizeof(scale));
    }
}

void bf16_round(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = bf16_float(bf16_of(x[i]));
}

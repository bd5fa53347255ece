/* SPDX-License-Identifier: MIT
 *
 * Numbers of tensors as floats. Data may lie at any address: bytes are copied, never read through a
 * wider pointer. */
#include "elem.h"
#include "tensor_blocks.h"

/* Numbers and bytes of a block; bytes 0 = cannot be read. */
static struct tensor_blocks form_of(enum dtype dtype)
{
    const struct tensor_blocks *const blocks = tensor_blocks_of(dtype);

    if (blocks)
        return *blocks;
    if (dtype == DTYPE_F32)
        return (struct tensor_blocks){1, sizeof(float), NULL};
    if (dtype == DTYPE_F16 || dtype == DTYPE_BF16)
        return (struct tensor_blocks){1, sizeof(uint16_t), NULL};
    return (struct tensor_blocks){0, 0, NULL};
}

bool tensor_is_readable(enum dtype dtype) { return form_of(dtype).bytes > 0; }

int tensor_block(enum dtype dtype) { return form_of(dtype).numbers; }

size_t tensor_bytes(enum dtype dtype, size_t n)
{
    const struct tensor_blocks f = form_of(dtype);

    CHECK(f.numbers > 0);
    return (n + (size_t)f.numbers - 1) / (size_t)f.numbers * (size_t)f.bytes;
}

/* A part of a block, or all of it. */
static void widen_blocks(float *to, const struct tensor_blocks *f, const unsigned char *data,
                         size_t first, size_t n)
{
    const size_t numbers = (size_t)f->numbers;
    float some[MOST_IN_BLOCK];

    for (size_t i = 0, length; i < n; i += length) {
        const size_t skip = (first + i) % numbers;
        const unsigned char *const block = data + (first + i) / numbers * (size_t)f->bytes;
        length = numbers - skip < n - i ? numbers - skip : n - i;
        f->widen(length == numbers ? to + i : some, block);
        if (length < numbers)
            memcpy(to + i, some + skip, length * sizeof(*to));
    }
}

void tensor_floats(float *to, const struct tensor *t, size_t first, size_t n)
{
    const unsigned char *const data = t->data;
    const struct tensor_blocks *const blocks = tensor_blocks_of(t->dtype);

    CHECK(first <= t->n && n <= t->n - first);
    CHECK(tensor_is_readable(t->dtype));
    if (blocks)
        widen_blocks(to, blocks, data, first, n);
    if (n > 0 && t->dtype == DTYPE_F32)
        memcpy(to, data + first * sizeof(float), n * sizeof(float));
    for (size_t i = 0; (t->dtype == DTYPE_F16 || t->dtype == DTYPE_BF16) && i < n; i++) {
        uint16_t half;
        memcpy(&half, data + (first + i) * sizeof(half), sizeof(half));
        to[i] = t->dtype == DTYPE_F16 ? half_float(half) : bf16_float(half);
    }
}

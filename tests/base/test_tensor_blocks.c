/* SPDX-License-Identifier: MIT
 *
 * Blocks of GGUF: any part of a row is what it is in the whole. The numbers themselves:
 * tests/golden-import/gguf_llama_mixed. */
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

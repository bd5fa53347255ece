/* SPDX-License-Identifier: MIT
 *
 * Blocks of numbers of GGUF files (ggml, ggml-common.h): some numbers of a row with what they have in
 * common. Read only: products and sums are those of the program that writes them, in float. */
#pragma once

#include "safetensors.h"

enum { MOST_IN_BLOCK = 256 };

struct tensor_blocks {
    int numbers, bytes; /* of a block */
    void (*widen)(float *to, const unsigned char *block);
};

/* NULL where the type has none. */
const struct tensor_blocks *tensor_blocks_of(enum dtype dtype);

/* The numbers of E2M1, FP4 of the OCP Microscaling formats: a sign, two bits of exponent, one of fraction. */
extern const float fp4_number[16];

/* IEEE binary16, exactly. */
float half_float(uint16_t half);

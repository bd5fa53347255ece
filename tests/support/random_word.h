/* SPDX-License-Identifier: MIT
 *
 * For tests of texts on their way through lines and files: words of random bytes, seeded. */
#pragma once

#include "variants/base/rng.h"

/* A word of less than `size` bytes: any byte, the special ones of shells and of our own lines
 * often.
 */
static inline void random_word(char *word, size_t size, uint64_t seed)
{
    static const char often[] = "\"'\\$@#-=, \t\n\r`!;{}()*?\033abxn1";
    const uint64_t stream = rng_stream("word");
    const size_t n = rng_u32(seed, stream, 0) % size;

    for (size_t i = 0; i < n; i++) {
        const uint32_t x = rng_u32(seed, stream, i + 1);
        word[i] = x % 3 ? often[(x >> 8) % (sizeof(often) - 1)] : (char)(1 + (x >> 8) % 255);
    }
    word[n] = '\0';
}

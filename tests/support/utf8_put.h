/* SPDX-License-Identifier: MIT
 *
 * Writing UTF-8, which the program only reads. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Append the character to `to`, of at least 4 bytes; its length. */
static inline size_t utf8_put(char *to, int32_t c)
{
    const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};

    to[0] = (char)(first[more] | (unsigned)c >> (6 * more));
    for (int i = 1; i <= more; i++)
        to[i] = (char)(0x80 | ((unsigned)c >> (6 * (more - i)) & 0x3f));
    return (size_t)more + 1;
}

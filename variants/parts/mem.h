/* SPDX-License-Identifier: MIT
 *
 * Compressed memory: the own numbers of mem_compressive. */
#pragma once

#include "variants/variant.h"

/* How rows too old for the memory are compressed. */
enum compress { COMPRESS_MEAN, COMPRESS_MAX, COMPRESS_CONV, COMPRESS_COUNT };
extern const char *const compress_name[COMPRESS_COUNT + 1]; /* "mean" "max" "conv" NULL */

struct compressive {
    int form;        /* enum compress */
    int rows, ratio; /* compressed ones of the memory, 0 = none; rows that become one */
};

/* Zeros for a model whose memory has no such rows. */
static inline const struct compressive *compressive_of(const struct config *c)
{
    return config_numbers(c, SLOT_MEM);
}

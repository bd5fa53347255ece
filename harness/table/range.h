/* SPDX-License-Identifier: MIT
 *
 * What may stand in a column of a table: a reader refuses what this program never writes. */
#pragma once

#include "record.h"

struct column_range {
    double least, most;       /* of a number */
    const char *const *words; /* of a text, ended by NULL; NULL = any. An empty one is none */
};

struct column_range column_range(const struct column *c);

/* Put into `wanted` what may stand there, for a message: "a number from 0 on". */
void column_range_text(const struct column_range *r, char *wanted, size_t size);

/* SPDX-License-Identifier: MIT
 *
 * Rows of files that are older than the columns which say what model ran. */
#ifndef FILL_IN_H
#define FILL_IN_H

#include "record.h"

/* Fill those columns where the file had none: what could not be chosen then was the variant's own.
 * Rows of a variant or sizes that this program does not know stay as they are. For tables that
 * begin with the key columns; others are left alone. */
void rows_fill_in(const struct table *t, struct rows *rows);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Tied tensors that a file holds twice: versions of the publisher's program read one or the other,
 * so both must hold the same numbers. */
#pragma once

#include "opened.h"

/* Is this tensor tied to another in this model? Then *first is the other; NULL: files lack it. */
bool ties_find(const struct shard_tensor **first, const struct published *p, const char *name);

/* E_IO naming both: they have other shapes, or a type that is not read. */
enum status ties_check_shape(const struct published *p, const struct tensor *t,
                             const struct shard_tensor *first, struct err *e);

/* E_IO naming both: of all that is tied, one holds other numbers. Reads them. */
enum status ties_check_numbers(const struct published *p, struct err *e);

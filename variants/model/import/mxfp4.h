/* SPDX-License-Identifier: MIT
 *
 * Published tensors in MXFP4 (Open Compute Project 2023, Microscaling Formats 1.0): a number has 4
 * bits, e2m1, and 32 of a row share a power of two, of 8 bits. Two tensors of bytes:
 *
 *   blocks  [experts, parts * rows, columns / 32, 16]   the lower half of a byte is the first of two
 *   scales  [experts, parts * rows, columns / 32]
 *
 * with the rows of all parts in turn. Ours are [experts, rows, columns]. */
#pragma once

#include "opened.h"

/* The shape of the blocks. Returns their rank. */
int mxfp4_shape(int64_t shape[TENSOR_RANK], const struct param *w, int parts);
/* Blocks of that shape are bytes, and so are scales that fit them; NULL = there are none. E_IO. */
enum status mxfp4_check(const struct published *p, const struct tensor *blocks,
                        const struct tensor *scales, const struct param *w, struct err *e);
/* Widen a part into w, exactly. A scale that is no number makes values that are not finite. */
void mxfp4_read(const struct param *w, const struct tensor *blocks, const struct tensor *scales,
                int part, int parts);

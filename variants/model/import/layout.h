/* SPDX-License-Identifier: MIT
 *
 * How the numbers of a tensor of ours lie in a published one, as its row says (enum layout). */
#pragma once

#include "model_type.h"
#include "opened.h"

/* The shape of the published tensor of a row, from w, which is ours. Returns its rank. */
int layout_shape(const struct published *p, int64_t shape[TENSOR_RANK],
                 const struct tensor_row *row, const struct param *w);
/* Widen the published tensor, of that shape, into w. E_NOMEM. */
enum status layout_read(const struct published *p, const struct param *w,
                        const struct tensor_row *row, const struct tensor *t);
/* The published place of each number of w, from 1; 0 = it has none. Asked of layout_read, which reads
 * places digit by digit. E_NOMEM. */
enum status layout_places(size_t *places, const struct published *p, const struct param *w,
                          const struct tensor_row *row, const struct tensor *t);

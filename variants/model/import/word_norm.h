/* SPDX-License-Identifier: MIT
 *
 * A layer norm directly behind the embedding of a published model. It is the same for each word
 * wherever it stands, so the rows of our embedding are computed with it, once. */
#pragma once

#include "opened.h"

struct tensor_row;

/* Both do nothing for rows without such a norm. E_IO where its tensors are missing, of another shape
 * or type; they are then used. `w` is the embedding, [words,width]. */
enum status word_norm_check(const struct published *p, const struct tensor_row *row,
                            const struct param *w, struct err *e);
/* In place. E_IO where a word has no finite row any more. */
enum status word_norm_apply(const struct published *p, const struct tensor_row *row,
                            const struct param *w, struct err *e);

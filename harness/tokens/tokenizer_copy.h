/* SPDX-License-Identifier: MIT
 *
 * The files of a published tokenizer, copied beside a checkpoint that is made of its model. */
#pragma once

#include "variants/base/base.h"

/* Copy what tokenizer_open reads of the folder `from` to the folder `to`, which is made if there is
 * something; *any says whether there is. Beside it go the files that say which token begins a text,
 * which ones end it, and whose rules are meant. Those of an earlier model in `to` are removed. E_IO names the file. */
enum status tokenizer_copy(const char *from, const char *to, bool *any, struct err *e);

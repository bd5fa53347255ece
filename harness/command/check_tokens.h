/* SPDX-License-Identifier: MIT
 *
 * The part of bench check that asks for a tokenizer. */
#ifndef CHECK_TOKENS_H
#define CHECK_TOKENS_H

#include "harness/cli/options.h"

/* Checks the tokenizer of the folder --tokens; *failed texts were split otherwise than --golden
 * says. */
enum status check_tokens(const struct options *o, int *failed, struct err *e);

#endif

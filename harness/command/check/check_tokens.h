/* SPDX-License-Identifier: MIT
 *
 * The part of bench check that asks for a tokenizer. */
#pragma once

#include "harness/cli/options.h"

/* Checks the tokenizer of the folder --tokens: *code is EXIT_WRONG_NUMBERS if texts were split otherwise
 * than --golden says. */
enum status check_tokens(const struct options *o, int *code, struct err *e);

/* SPDX-License-Identifier: MIT
 *
 * A generated text as a row for programs: the text, its tokens, why it ended, how fast it was. */
#ifndef GENERATED_ROW_H
#define GENERATED_ROW_H

#include "harness/learn/generate.h"
#include "harness/util/text_table.h"

/* Does --format ask for rows, in place of a text to read? */
bool generated_is_row(const struct options *o);

/* E_USAGE for --columns without rows, and for one that they do not have. */
enum status generated_check(const struct options *o, struct err *e);

/* Tokens per second of reading the prompt, of choosing all but the first token; 0 where there are
 * none. */
double generated_prompt_speed(const struct generated *made);
double generated_speed(const struct generated *made);

/* Print it as --format and --columns say. Bytes that are no UTF-8, and zeros, are U+FFFD in the
 * texts; the ids have them all. */
enum status generated_print(const struct options *o, const struct bytes *prompt,
                            const struct generated *made, struct err *e);

#endif

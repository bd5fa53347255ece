/* SPDX-License-Identifier: MIT
 *
 * Golden files of tokenizers: texts, and the ids and the decoded text that the publisher's program
 * makes of each. */
#ifndef GOLDEN_TOKENS_H
#define GOLDEN_TOKENS_H

#include "harness/tokens/tokenizer.h"

/* One text, by its line from 1 on: `why` is "" if all is equal. */
typedef void golden_text_fn(void *arg, int line, const char *why);

/* Each line of the file is {"hex": bytes of a text, "ids": [...], "back": bytes}; without "back"
 * the text is not decoded. Parts that are not UTF-8 are replaced first. E_IO naming the line that
 * is none of these. */
enum status golden_tokens(struct tokenizer *t, const char *path, golden_text_fn *report, void *arg,
                          struct err *e);

#endif

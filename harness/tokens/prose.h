/* SPDX-License-Identifier: MIT
 *
 * What published perplexities do to a text before it becomes tokens: joining its lines, cutting it
 * into documents, undoing the tokenisation of WikiText, and counting its words. */
#pragma once

#include "harness/util/fileio.h"

/* Two further line ends after each line but the last, as the documentation of the transformers
 * library joins WikiText. */
enum status prose_join(struct bytes *out, const char *text, size_t n, struct err *e);

/* Documents of a text, in order; together they are all of it, but for separating texts.
 *   none      the text
 *   line      a line each, with its end
 *   blank     paragraphs, with the blank lines behind them
 *   wikitext  pages: a blank line and the title " = T = " after it begin one
 *   TEXT      what stands between such texts; of no bytes: none */
struct documents {
    const char *sep; /* as above */
    const char *at, *end;
};
bool document_next(struct documents *d, const char **text, size_t *n);

/* Page of WikiText as it was before it was cut into words: the replacements of EleutherAI's
 * lm-evaluation-harness, in its order. */
enum status prose_detokenise(struct bytes *out, const char *text, size_t n, struct err *e);

/* Pieces between runs of white space, as Python's re.split(r"\s+") counts them: white space at an
 * end makes an empty one, which counts. */
size_t prose_words(const char *text, size_t n);

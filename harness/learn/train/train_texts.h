/* SPDX-License-Identifier: MIT
 *
 * The texts of a training: which they are, as bytes and symbols, tokens of a tokenizer, or ids that
 * were made elsewhere, and which part of them validates. */
#pragma once

#include "trainer.h"

/* E_USAGE for options of tokens that do not go together. */
enum status train_texts_check(const struct options *o, struct err *e);

/* The pair that --corpus asks for, a source that has pairs. */
struct source_pair train_pair(const struct options *o);

/* Find the tokenizer, open both texts, and make tokens of them: t->text, t->valid, and in t->corpus
 * the number of symbols and what they are called. */
enum status train_texts_open(struct trainer *t, struct err *e);
/* After that: are they long enough? VALID_TOKENS at most validate. */
enum status train_texts_check_length(struct trainer *t, struct err *e);

/* Copy the tokenizer to the folder beside the checkpoint: t->beside, "" where there is none. A GGUF
 * file is not copied. */
enum status train_texts_keep(struct trainer *t, const char *ckpt, struct err *e);

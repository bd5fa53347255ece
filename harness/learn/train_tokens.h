/* SPDX-License-Identifier: MIT
 *
 * Texts of a training as tokens of a tokenizer, or as ids that were made elsewhere. */
#ifndef TRAIN_TOKENS_H
#define TRAIN_TOKENS_H

#include "train.h"

/* E_USAGE for options of tokens that do not go together. */
enum status train_tokens_check(const struct options *o, struct err *e);

/* Find the tokenizer: t->tokenizer, "" where tokens are bytes or ids. */
enum status train_tokens_find(struct trainer *t, struct err *e);
/* Are the tokens of this training bytes or symbols? */
bool train_tokens_are_bytes(const struct trainer *t);

/* Make tokens of t->corpus, and of --valid: t->text, t->valid, and in t->corpus their number and what
 * they are. */
enum status train_tokens_open(struct trainer *t, struct err *e);

/* Copy the tokenizer to the folder beside the checkpoint: t->beside, "" where there is none. A GGUF
 * file is not copied. */
enum status train_tokens_keep(struct trainer *t, const char *ckpt, struct err *e);

#endif

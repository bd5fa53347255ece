/* SPDX-License-Identifier: MIT
 *
 * A training that goes on from trained weights (--from): a published model, or a checkpoint of ours,
 * with a new optimiser. Sizes and choices are the model's. Texts become tokens by its tokenizer,
 * which is kept beside the new checkpoint. */
#pragma once

#include "trainer.h"

/* Take the variant, and what --mem is by default, from the weights. E_USAGE for an option that the
 * weights decide, by its name, and for a text that is missing; E_UNSUPPORTED for a model that
 * predicts no next token. */
enum status train_from_settle(struct options *o, struct err *e);

/* The model of the weights, or of the training that is resumed, without the lengths of this
 * training; options that no weight depends on are taken. */
enum status train_from_config(struct config *to, const struct options *o, struct err *e);

/* E_IO if a text of bytes or symbols has not those of the model. */
enum status train_from_fits(const struct trainer *t, struct err *e);

/* Copy the weights into the parameters of t->lm. */
enum status train_from_load(struct trainer *t, struct err *e);

/* Freeze all parameters but those that a pattern covers; of no patterns, none. E_USAGE naming one of the
 * option's that covers none. */
enum status train_from_only(struct params *p, const char *option, const struct names *patterns,
                            struct err *e);

/* --lora: add its parameters to t->lm, before they are placed. */
enum status train_from_lora(struct trainer *t, struct err *e);

/* Where the tokenizer of the weights is, and what they were published as: t->tokenizer, t->origin. */
enum status train_from_names(struct trainer *t, struct err *e);

/* SPDX-License-Identifier: MIT
 *
 * The models in a folder: `bench list models`. */
#ifndef LIST_MODELS_H
#define LIST_MODELS_H

#include "harness/cli/options.h"

/* A row for each checkpoint of ours and each published model in the folder that is the second word,
 * or the working one: what it is, or why it cannot be read. Returns the exit code. */
int list_models(struct options *opt);

#endif

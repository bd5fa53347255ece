/* SPDX-License-Identifier: MIT
 *
 * Skeletons: what most ideas leave alone, the same for all variants. A skeleton is a list of values of
 * rows that have options or settings: place and kind of norms, the feed-forward network and its
 * width, biases, tying. It takes effect where options do, and what is typed comes before it. */
#pragma once

#include "choices.h"

enum skeleton { SKELETON_OWN, SKELETON_POST, SKELETON_LLAMA, SKELETON_COUNT };
extern const char *const skeleton_name[SKELETON_COUNT + 1]; /* "own" "post" "llama" NULL */

/* Give a model the rows of a skeleton. Left as they are: choices that are `typed`, the width if
 * `width_typed`; those that are the variant's idea, because it differs in them from its control;
 * those that it cannot be with; and those that it has no use for, such as norms without norms. */
void skeleton_apply(struct config *c, enum skeleton kind, const bool typed[MODEL_CHOICE_COUNT],
                    bool width_typed);

/* The rows that a model has otherwise, as "norm_place=reorder ffn=moe"; "" where it has all. */
enum { SKELETON_TEXT = 128 };
void skeleton_rest(char text[SKELETON_TEXT], const struct config *c, enum skeleton kind);

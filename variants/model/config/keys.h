/* SPDX-License-Identifier: MIT
 *
 * The keys under which files store struct config, a row each. Rows that users choose are in
 * choices.h, numbers of parts in the rows of their `struct part_numbers`. Everything that reads, writes or
 * compares models in files loops over these rows. */
#pragma once

#include "variants/variant.h"

/* The i-th row of struct config; NULL after the last. The first ones are the sizes that a config is
 * made from; rows of SCOPE_LAYER say what norms, feed-forward networks and LocalRNNs are. */
enum { MODEL_SIZES = 6 };
const struct choice *model_key(int i);
/* Is it one of them? */
bool is_model_key(const struct choice *row);

/* Does the setting feature_map choose the mixer of such a model? */
bool has_feature_map(const struct config *c);

/* The key that says whether a model has a second scheme: not 0 if it has. */
struct extra_key {
    const char *key;
    const struct pos *extra;
};
extern const struct extra_key extra_keys[]; /* the last one has no key */

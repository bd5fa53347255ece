/* SPDX-License-Identifier: MIT
 *
 * What files say of a model: the rows of struct config, under the keys of files. Those that people
 * choose are in choices.h, the numbers of parts in the rows of their `struct own`. Everything that
 * reads, writes or compares models in files is a loop over these. */
#ifndef KEYS_H
#define KEYS_H

#include "variants/variant.h"

/* The i-th row of struct config; NULL after the last. The first ones are the sizes that a config is
 * made from; rows of SCOPE_LAYER say what norms, feed-forward networks and LocalRNNs are. */
enum { MODEL_SIZES = 6 };
const struct choice *model_key(int i);

/* The key that a second scheme is known by, which is not 0 where it is the model's. */
struct extra_key {
    const char *key;
    const struct pos *extra;
};
extern const struct extra_key extra_keys[]; /* the last one has no key */

#endif

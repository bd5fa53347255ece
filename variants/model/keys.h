/* SPDX-License-Identifier: MIT
 *
 * What files say of a model beside its sizes and the numbers of its parts: rows of struct config.
 * Some of them are settings, too. What --help and tables call a choice is in choices.h. */
#ifndef KEYS_H
#define KEYS_H

#include "variants/variant.h"

/* The largest sizes that are believed, so that no product of a few of them leaves its type. */
enum { WIDE = 1 << 20, DEEP = 1 << 12 };

/* Both end with a row without a name. */
extern const struct choice layer_keys[]; /* feed-forward network, norms, LocalRNNs */
extern const struct choice model_keys[]; /* the rest */

/* The key that a second scheme is known by, which is not 0 where it is the model's. */
struct extra_key {
    const char *key;
    const struct pos *extra;
};
extern const struct extra_key extra_keys[]; /* the last one has no key */

#endif

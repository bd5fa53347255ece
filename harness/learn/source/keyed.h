/* SPDX-License-Identifier: MIT
 *
 * Texts "NAME:key=value,..." and the keys that a NAME has: what generated texts and tasks are
 * called by. */
#pragma once

#include "variants/base/base.h"

enum { KEYED_KEYS = 5, KEYED_TEXT = 128 };

/* A key: whole numbers from least to most, numbers, or the index of a word. */
struct keyed_key {
    const char *name;
    double usual, least, most;
    bool real;
    const char *const *words; /* NULL-terminated */
};

struct keyed_name {
    const char *noun; /* in messages: "source" */
    const char *name;
    const struct keyed_key *keys; /* [KEYED_KEYS], without a name: none */
};

/* Is `text` one of `name`? */
bool keyed_is(const char *text, const char *name);

/* As it is usually written, with all keys. */
void keyed_usual(char text[KEYED_TEXT], const struct keyed_name *n);

/* Keys in any order, missing ones as usual; `seed`, which all have, 0. E_USAGE for what there is
 * not or cannot be. */
enum status keyed_read(const struct keyed_name *n, const char *text, double value[KEYED_KEYS],
                       uint64_t *seed, struct err *e);

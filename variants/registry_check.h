/* SPDX-License-Identifier: MIT
 *
 * What the structs of the lists need: a field that is forgotten is named when the program starts, not
 * met by a kernel. */
#pragma once

#include "variants/base/base.h"

/* A place in a struct; size 0 = none. */
struct place {
    size_t at, size;
};

/* A field that must not be 0 where `with` are not, or the first is `is`, and `without` are. */
struct needed {
    const char *field;
    struct place at;
    const char *give; /* NULL = a function or an array, which the header explains */
    struct place with[2], without[2];
    const void *is;
};

/* What one kind of struct needs. `inner`: likewise, structs that a field points to; of lists that end
 * in NULL, each of the list. */
struct needs {
    const char *noun, *header;
    size_t size;
    const struct needed *field; /* ends with a field NULL */
    struct inner {
        const char *field;
        struct place at;
        const struct needs *of;
        bool list;
    } inner[4];
};

/* A list of structs of one kind, and their names there. */
struct registered {
    const struct needs *needs;
    const struct entry {
        const char *word;
        const void *at;
    } * entry; /* ends with a word NULL */
};
extern const struct registered registered[]; /* ends with needs NULL */

/* OK, or E_UNSUPPORTED naming the first field that it lacks. */
enum status registry_lacks(const struct needs *needs, const char *word, const void *at,
                           struct err *e);

/* Likewise: whether what it inherits is there; which part of a variant is in no list; what the steps of
 * its layers lack. */
struct backend;
struct variant;
enum status registry_backend(const struct backend *b, const char *word, struct err *e);
enum status registry_parts(const struct variant *v, struct err *e);
enum status registry_steps(const struct variant *v, struct err *e);

/* No two of a list may have one name. */
enum status registry_names(const struct registered *r, struct err *e);

/* All of it, of all lists. */
enum status registry_check(struct err *e);

/* SPDX-License-Identifier: MIT
 *
 * A copy of a safetensors file with one change that readers must detect. */
#pragma once

#include "failure.h"
#include "variants/base/safetensors.h"

#include <fnmatch.h>

/* Members that are NULL change nothing. */
struct edit {
    const char *key, *value;       /* metadata; value NULL removes the key */
    const char *drop;              /* this tensor is left out; "out.*": all that begin with out. */
    const char *nudge;             /* this tensor's element `at` is moved by `by` */
    const char *reshape;           /* this tensor reads [n] */
    const char *retype;            /* this F32 tensor reads I32 */
    const char *rename, *new_name; /* this tensor has another name */
    size_t at;
    float by;
};

static inline bool is_named(const char *name, const char *wanted)
{
    return wanted && strcmp(name, wanted) == 0;
}

static inline const char **edited_meta(const struct safetensors *s, const struct edit *d, int *n)
{
    const char **meta = room((size_t)(2 * s->n_meta + 2), sizeof(*meta));
    bool found = false;

    *n = 0;
    for (int i = 0; i < s->n_meta; i++) {
        const bool mine = is_named(s->meta[2 * i], d->key);
        found |= mine;
        if (mine && !d->value)
            continue;
        meta[2 * *n] = s->meta[2 * i];
        meta[2 * *n + 1] = mine ? d->value : s->meta[2 * i + 1];
        (*n)++;
    }
    if (d->key && d->value && !found) {
        meta[2 * *n] = d->key;
        meta[2 * *n + 1] = d->value;
        (*n)++;
    }
    return meta;
}

static inline void edited_file(const char *to, const char *from, const struct edit *d)
{
    struct safetensors s;
    int n = 0, n_meta;
    bool touched = false;

    MUST(safetensors_open(&s, from, &failure));
    struct tensor *list = room((size_t)s.n_tensors, sizeof(*list));
    float *copy = NULL;
    for (int i = 0; i < s.n_tensors; i++) {
        struct tensor t = s.tensors[i];
        if (is_named(t.name, d->nudge)) {
            copy = room(t.n, sizeof(*copy));
            memcpy(copy, t.data, t.n * sizeof(*copy));
            copy[d->at] += d->by;
            t.data = copy;
        }
        if (is_named(t.name, d->reshape)) {
            t.rank = 1;
            t.shape[0] = (int)t.n;
        }
        if (is_named(t.name, d->retype))
            t.dtype = DTYPE_I32;
        const bool dropped = d->drop && fnmatch(d->drop, t.name, 0) == 0;
        touched |= is_named(t.name, d->nudge) || is_named(t.name, d->reshape) ||
                   is_named(t.name, d->retype) || dropped || is_named(t.name, d->rename);
        if (is_named(t.name, d->rename))
            strcpy(t.name, d->new_name);
        if (!dropped)
            list[n++] = t;
    }
    cr_assert_eq(touched, d->nudge || d->reshape || d->retype || d->drop || d->rename,
                 "%s has no such tensor", from);
    const char **meta = edited_meta(&s, d, &n_meta);
    MUST(safetensors_write(to, list, n, meta, n_meta, &failure));
    safetensors_close(&s);
}

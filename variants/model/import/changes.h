/* SPDX-License-Identifier: MIT
 *
 * A published model with other numbers: its files as they were, with those of a model of ours in the
 * places that its rows name. What was changed is F32, all else keeps its bits and its type. */
#pragma once

#include "opened.h"

struct changes {
    float **numbers; /* [shards.n_tensors]; NULL = as published */
    int n, changed;
};

/* What differs in the parameters of a model of p's config. E_UNSUPPORTED naming a tensor whose form
 * holds no other numbers, E_IO, E_NOMEM. */
enum status changes_find(struct changes *c, const struct published *p, const struct params *params,
                         struct err *e);
void changes_free(struct changes *c);

/* Write file i of p. E_IO. */
enum status changes_write(const struct changes *c, const struct published *p, int i,
                          const char *path, struct err *e);

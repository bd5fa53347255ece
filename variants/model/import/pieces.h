/* SPDX-License-Identifier: MIT
 *
 * Where the numbers of a tensor of ours stand in published files. */
#pragma once

#include "model_type.h"
#include "opened.h"

/* A tensor of ours, or some rows of one, that one published tensor holds. */
struct piece {
    struct param w;
    const struct tensor_row *row;
    int layer, expert, of;  /* of so many pieces */
    char name[TENSOR_NAME]; /* published */
};
/* The nth of w. */
struct piece piece_of(const struct published *p, const struct param *w, int nth);

/* One tensor of ours, as published_load reads all. */
enum status published_load_one(const struct published *p, struct param *w, struct err *e);

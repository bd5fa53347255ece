/* SPDX-License-Identifier: MIT
 *
 * The Reformer's own numbers, and its published form. */
#pragma once

#include "content.h"

enum lsh_form { LSH_EXACT, LSH_CHUNKED };
struct lsh {
    enum lsh_form form;
    int rounds, half; /* rounds of hashing; half of the buckets */
    int window;       /* of exact */
    int chunk;        /* of chunked, as are these */
    bool within, duplicates;
};
const struct lsh *lsh_of(const struct config *c);

/* Bucket of row j in round r. */
int lsh_bucket(const struct content_call *n, int b, int h, int j, int r);

/* ---- chunks, lsh_chunked.c ---------------------------------------------------------------- */

size_t lsh_chunked_scratch(const struct sublayer *s, struct extent max, int threads);
content_head lsh_chunked_head;

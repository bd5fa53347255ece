/* SPDX-License-Identifier: MIT
 *
 * Which keys a query sees. A mask is one sparse pattern over stream positions, hence independent of
 * how the stream is cut into segments; a sight is what one head of one attention call sees:
 * causality, window and mask combined. */
#pragma once

#include "variants/base/base.h"

/* For a query at position a, a key at c and n = a - c, the key is visible if n = 0 or one of
 * these holds, among those whose first field is not 0; a zeroed mask hides nothing:
 *
 *   window, dilation    |n| < window dilation and n mod dilation = 0       (dilation 0 is 1)
 *   block, back         whole blocks of a and of c are at most `back` apart
 *     memory            or c is one of so many before the block of a              (needs block)
 *     n_random          or the block of c is one of random[block of a][..]      (needs block)
 *   stride              n mod stride = 0
 *   fixed, summary      c mod fixed >= fixed - summary
 *   global              c < global or a < global
 *   rect_rows, rect     the stream is a picture of rows of `row` columns, cut into tiles of so many
 *                       rows and columns, in the order of reading, as are the tokens of a tile; c
 *                       is in the rectangle that the tile of a and `margin_rows` rows and `margin`
 *                       columns around it are (mask_rect.c)
 *
 * With `rows` nothing of this holds: key c is visible iff bit c of row a is set. */
struct mask {
    int window, dilation;
    int block, back, memory;
    int stride;
    int fixed, summary;
    int global;
    int rect_rows, rect, row, margin_rows, margin; /* rect divides row */
    int n_random, random_blocks;
    int64_t random_from;   /* query block of row 0 of random */
    const int32_t *random; /* [random_blocks, n_random] key blocks per query block, -1 = none */
    const uint64_t *rows; /* bits of keys for each query, lowest first; NULL = by the rules above */
    int row_words;
};

static inline bool mask_hides_nothing(const struct mask *m)
{
    return !(m->window || m->block || m->stride || m->fixed || m->global || m->rect || m->rows);
}

bool mask_visible(const struct mask *m, int64_t query, int64_t key);

/* Of the rectangle alone. */
bool mask_rect_visible(const struct mask *m, int64_t query, int64_t key);
/* Its next contiguous positions [from, to) at or after p; false if there are none. */
bool mask_rect_next(const struct mask *m, int64_t query, int64_t p, int64_t *from, int64_t *to);

/* The row of bits of a query. */
static inline const uint64_t *mask_row(const struct mask *m, int64_t query)
{
    return m->rows + query * m->row_words;
}

struct sight {
    int L, K;                 /* queries, keys */
    int64_t query, key;       /* positions of the first query and key, >= 0 with a mask */
    int query_step, key_step; /* distance between neighbours, >= 1 */
    bool causal;              /* no key after the query */
    int window;               /* query - key < window; 0 = off */
    const struct mask *mask;  /* NULL = off */
};

bool sight_visible(const struct sight *s, int i, int j);

/* Keys [from, to). */
struct range {
    int from, to;
};

/* Advance r to the next contiguous keys after r->to that any of the queries [i, i+n) sees; false if
 * there are none. Start with a zeroed range. */
bool sight_next(const struct sight *s, int i, int n, struct range *r);

/* From the first to the last key that any of the queries [i, i+n) sees. May have gaps, and may
 * begin too early if a query sees nothing. */
struct range sight_hull(const struct sight *s, int i, int n);

/* Visible pairs. */
double sight_pairs(const struct sight *s);

/* ---- many rows at once -------------------------------------------------------------------- */

/* Rows of bits, one bit per key, 64 to a word, lowest bit first. */
int bits_words(int keys);

/* Set `bits` [bits_words(K)] to the keys that query i sees; key_step must be 1. */
void sight_bits(const struct sight *s, int i, uint64_t *bits);

/* Advance r to the next contiguous keys after r->to and before `end`, in groups of `group` keys of
 * which at least one is set; false if there are none. `group` divides 64; r->to is a multiple of it
 * or `end`. */
bool bits_next(const uint64_t *bits, int group, int end, struct range *r);

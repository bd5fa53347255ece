/* SPDX-License-Identifier: MIT
 *
 * Which keys a query sees. A mask is one sparse pattern over positions in the stream, so that
 * segments of any cut agree; a sight is what one head of one attention sees: causality, a window
 * and a mask together. Nothing here knows what is done with the pairs. */
#ifndef MASK_H
#define MASK_H

#include "variants/base/base.h"

/* With the query at position a, the key at c and n = a - c, the key is visible if n = 0 or one of
 * these holds, of those whose first field is not 0; a mask of zeros hides nothing:
 *
 *   window, dilation    |n| < window dilation and n mod dilation = 0       (dilation 0 is 1)
 *   block, back         whole blocks of a and of c are at most `back` apart
 *     n_random          or the block of c is one of random[block of a][..]      (needs block)
 *   stride              n mod stride = 0
 *   fixed, summary      c mod fixed >= fixed - summary
 *   global              c < global or a < global                                          */
struct mask {
    int window, dilation;
    int block, back;
    int stride;
    int fixed, summary;
    int global;
    int n_random, random_blocks;
    int64_t random_from;   /* block of the first row of: */
    const int32_t *random; /* [random_blocks, n_random] key blocks of each query block, -1 = none */
};

static inline bool mask_hides_nothing(const struct mask *m)
{
    return !(m->window || m->block || m->stride || m->fixed || m->global);
}

bool mask_visible(const struct mask *m, int64_t query, int64_t key);

struct sight {
    int L, K;                 /* queries, keys */
    int64_t query, key;       /* positions of the first of each, >= 0 where there is a mask */
    int query_step, key_step; /* from one to the next, >= 1 */
    bool causal;              /* no key behind the query */
    int window;               /* query - key < window; 0 = off */
    const struct mask *mask;  /* NULL = off */
};

bool sight_visible(const struct sight *s, int i, int j);

/* Keys [from, to). */
struct range {
    int from, to;
};

/* Go on to the next keys behind r->to that any of the queries [i, i+n) sees, as far as they lie
 * side by side; false where there are no more. Begin with a range of zeros. */
bool sight_next(const struct sight *s, int i, int n, struct range *r);

/* From the first key that any of the queries [i, i+n) sees to the last; may have gaps, and may
 * begin early where a query sees nothing. */
struct range sight_hull(const struct sight *s, int i, int n);

/* Visible pairs. */
double sight_pairs(const struct sight *s);

/* ---- many rows at once -------------------------------------------------------------------- */

/* Bits of keys: 64 to a word, the first the lowest. */
int bits_words(int keys);

/* Set `bits` [bits_words(K)] to the keys that query i sees; keys are a step of 1 apart. */
void sight_bits(const struct sight *s, int i, uint64_t *bits);

/* Go on to the next keys behind r->to that are set, in groups of `group` keys with one set, as far
 * as they lie side by side and no farther than `end`; false where there are no more before it.
 * `group` divides 64, r->to is a multiple of it or `end`. */
bool bits_next(const uint64_t *bits, int group, int end, struct range *r);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Memory of one layer as a linear buffer with slack: rows of width n per sequence, the remembered
 * rows in front of the new ones, so that attention sees one contiguous list of keys. When the slack
 * is used up the last M rows move to the front: at most one copy per row. */
#ifndef CACHE_H
#define CACHE_H

#include "variants/base/arena.h"

struct cache {
    float *at;      /* [B, cap, n] */
    int B, cap, n;  /* sequences, rows, row width */
    int keep;       /* most rows remembered */
    int start, M;   /* rows [start, start+M) are memory */
    int compressed; /* the first of them, each several rows of the past */
    int64_t seen;   /* rows that became memory since it was empty */
};

/* Room for `keep` remembered rows, L new ones and slack. The memory itself (keep rows) is counted
 * as PART_MEMORY, the rest as PART_SCRATCH. */
void cache_bind(struct cache *c, int B, int L, int keep, int n, struct arena *a);

/* Make room for L rows behind the memory (moves it to the front when it must). */
void cache_reserve(struct cache *c, int L);

/* First remembered row of sequence b; the new rows follow the M remembered ones. */
float *cache_rows(const struct cache *c, int b);
ptrdiff_t cache_stride(const struct cache *c); /* floats between sequences */
/* Position in the stream of the first row, remembered or new. */
int64_t cache_base(const struct cache *c);

/* The L rows behind the memory become memory; the oldest beyond `keep` are forgotten
 * (the last keep rows of [m; h]). */
void cache_commit(struct cache *c, int L);
void cache_clear(struct cache *c);

#endif

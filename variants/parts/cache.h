/* SPDX-License-Identifier: MIT
 *
 * Memory of one layer as a linear buffer with slack: rows of width n per sequence, remembered rows
 * followed by new ones, so that attention reads one contiguous list of keys. When the slack is used
 * up the last M rows move to the front: at most one copy per row. The first rows of all may stay
 * while those behind them are dropped; they then move along. */
#pragma once

#include "variants/base/arena.h"

struct cache {
    float *at;      /* [B, cap, n] */
    int B, cap, n;  /* sequences, rows, row width */
    int keep;       /* maximum of remembered rows */
    int stay;       /* how many of them are the first ever; 0 as bound */
    int start, M;   /* rows [start, start+M) are memory */
    int compressed; /* how many of them, the first ones, each stand for several past rows */
    int64_t seen;   /* rows committed since it was empty */
};

/* Room for `keep` remembered rows, L new ones and slack. The memory itself (keep rows) is counted
 * as PART_MEMORY, the rest as PART_SCRATCH. */
void cache_bind(struct cache *c, int B, int L, int keep, int n, struct arena *a);

/* Make room for L rows after the memory; moves the memory to the front if necessary. */
void cache_reserve(struct cache *c, int L);

/* First remembered row of sequence b; the new rows follow the M remembered ones. */
float *cache_rows(const struct cache *c, int b);
ptrdiff_t cache_stride(const struct cache *c); /* floats between sequences */
/* Stream position of the first row, remembered or new. */
int64_t cache_base(const struct cache *c);

/* The L rows after the memory become memory; the oldest beyond `keep`, but for the first `stay`,
 * are dropped (with stay 0 the last keep rows of [m; h] remain). */
void cache_commit(struct cache *c, int L);
void cache_clear(struct cache *c);

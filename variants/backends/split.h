/* SPDX-License-Identifier: MIT
 *
 * How the work of one call is cut for its threads: arithmetic on shapes, without operands, so that
 * a test can ask for machines that are not at hand. Kernels bring the sizes of their tiles and run
 * what they are given. No cut decides how a number is summed, except between the keys of a few
 * queries (struct split_few). Cuts of an output lie between cache lines where its rows are whole
 * lines. */
#pragma once

#include "attn.h"

enum { SPLIT_LINE = 16 }; /* floats of a cache line */

/* First of n things in share t of `shares` even ones; share t ends where t+1 begins. */
static inline int split_at(int n, int t, int shares) { return (int)((int64_t)n * t / shares); }

/* Fused attention: an item is a block of queries of one head. Items are taken one by one, the
 * longest first, or `fixed`: item t by thread t % threads, which then has the same heads as in
 * packing, finds in its caches what it packed, and finishes a head before the next. Blocks are
 * `most` high, which reads keys least often. Only if that makes fewer than two items for a thread,
 * and the heads do not divide evenly, they are halved, down to `least`: with two, the longest item
 * of causal attention is no longer than a thread's mean. */
struct split_attn {
    int heads, height, blocks, items;
    int abreast; /* heads whose items take turns */
    bool fixed;
};
struct split_attn split_attn(const struct attn *a, int most, int least, int threads);

/* Item t is of head `head` of all sequences, with queries from `first` on. */
struct split_attn_item {
    int head, first;
};
static inline struct split_attn_item split_attn_item(const struct split_attn *s, int t)
{
    const int turn = t / s->abreast, block = s->blocks - 1 - turn % s->blocks;

    return (struct split_attn_item){turn / s->blocks * s->abreast + t % s->abreast,
                                    block * s->height};
}

/* Attention of a few queries: items are sequences x shares of the heads x parts of the keys
 * [lo, hi), enough for every thread. Parts are preferred, because whole rows are read in memory
 * order. A part yields a partial softmax, merged afterwards; with parts there is at most one item
 * per thread. */
struct split_few {
    int B, H, shares, parts, items;
    int lo, hi;
    bool words; /* parts begin at whole words of a mask's bits */
};
struct split_few split_few(const struct attn *a, int threads);

/* Item t: keys [from, to) for heads [h0, h1) of sequence b. */
struct split_few_item {
    int b, h0, h1, part, from, to;
};
struct split_few_item split_few_item(const struct split_few *s, int t);

/* The first item of those that have head h of sequence b; the next parts follow it. */
int split_few_first(const struct split_few *s, int b, int h);

/* A product [m, n]: a grid of parts, one per thread. Parts are as square as the divisors of
 * `threads` allow, because each packs its own rows of a and columns of b; no row is cut where W is
 * read in place (`few`). Columns are cut at multiples of `unit`. */
struct split_gemm {
    int m, n, rows, cols, unit;
};
struct split_gemm_shape {
    int m, n, k;
    int tile_rows, tile_cols; /* of the register tile: smaller parts waste it */
    bool few, packed;         /* packed: b lies in slivers of tile_cols */
};
struct split_gemm split_gemm(const struct split_gemm_shape *of, int threads);

/* Part t of rows * cols: c[i0..i1) [j0..j1). */
struct split_gemm_part {
    int i0, i1, j0, j1;
};
struct split_gemm_part split_gemm_part(const struct split_gemm *s, int t);

/* Rows of n elements each: chunks, several per thread, because a causal softmax has uneven rows. */
int split_rows(int rows, int n, int threads);

/* Sums down columns: parts of whole lines. */
struct split_columns {
    int n, parts;
};
struct split_columns split_columns(int rows, int n, int threads);
static inline int split_columns_at(const struct split_columns *s, int t)
{
    const int lines = (s->n + SPLIT_LINE - 1) / SPLIT_LINE;

    return min_int(split_at(lines, t, s->parts) * SPLIT_LINE, s->n);
}

/* Slices of dv columns for each of `states` recurrent states: as many as give every thread one, at
 * most one per `width` columns. Columns do not interact. */
int split_slices(int states, int dv, int width, int threads);

/* First column of slice t of `slices`. */
static inline int split_slice_at(int dv, int width, int t, int slices)
{
    return min_int(split_at((dv + width - 1) / width, t, slices) * width, dv);
}

/* Width of the blocks in which each of B sequences has its n independent channels: `most`, halved
 * as long as there are fewer blocks than threads and a block is longer than a line. */
int split_channels(int B, int n, int most, int threads);

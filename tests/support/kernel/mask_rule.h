/* SPDX-License-Identifier: MIT
 *
 * For tests of masks: the rules of a sparse mask one by one, each by trying rather than by
 * arithmetic, and a few common patterns. Independent of ranges. */
#pragma once

#include "variants/backends/mask.h"

enum { RULE_BLOCKS = 128, RULE_RANDOM = 2 };

/* w keys to each side at most, spaced r apart. */
static inline bool rule_window(long w, long r, long a, long c)
{
    for (long t = -(w - 1); t < w; t++)
        if (c == a + t * (r ? r : 1))
            return true;
    return false;
}

/* Which piece of `size` a position is in. */
static inline long rule_piece(long size, long x)
{
    long piece = 0;

    for (; x >= size; x -= size)
        piece++;
    return piece;
}

static inline bool rule_block(const struct mask *m, long a, long c)
{
    const long from = rule_piece(m->block, a), to = rule_piece(m->block, c);

    for (long b = from - m->back; b <= from + m->back; b++)
        if (b == to)
            return true;
    for (long x = 1; x <= m->memory; x++)
        if (c == from * m->block - x)
            return true;
    for (int x = 0; x < m->n_random; x++)
        if (m->random[from * m->n_random + x] == to)
            return true;
    return false;
}

/* The last `summary` of each `fixed`. */
static inline bool rule_fixed(const struct mask *m, long c)
{
    const long within = c - rule_piece(m->fixed, c) * m->fixed;

    for (long back = 1; back <= m->summary; back++)
        if (within == m->fixed - back)
            return true;
    return false;
}

static inline bool rule_stride(long l, long a, long c)
{
    const long lo = a < c ? a : c, hi = a < c ? c : a;
    long x = lo;

    while (x < hi)
        x += l;
    return x == hi;
}

/* Row and column of each position by walking: bands of tiles, tiles, rows, columns. */
static inline void rule_place(const struct mask *m, long position, long *y, long *x)
{
    long at = 0;

    for (long band = 0;; band += m->rect_rows)
        for (long column = 0; column < m->row; column += m->rect)
            for (*y = band; *y < band + m->rect_rows; ++*y)
                for (*x = column; *x < column + m->rect; ++*x)
                    if (at++ == position)
                        return;
}

/* Some token of the tile of a is so near. */
static inline bool rule_rect(const struct mask *m, long a, long c)
{
    long ya, xa, yc, xc;

    rule_place(m, a, &ya, &xa);
    rule_place(m, c, &yc, &xc);
    const long top = rule_piece(m->rect_rows, ya) * m->rect_rows;
    const long left = rule_piece(m->rect, xa) * m->rect;
    for (long y = top; y < top + m->rect_rows; y++)
        for (long x = left; x < left + m->rect; x++)
            if (yc >= y - m->margin_rows && yc <= y + m->margin_rows && xc >= x - m->margin &&
                xc <= x + m->margin)
                return true;
    return false;
}

static inline bool rule_visible(const struct mask *m, long a, long c)
{
    if (a == c || (!m->window && !m->block && !m->stride && !m->fixed && !m->global && !m->rect))
        return true;
    if (m->window && rule_window(m->window, m->dilation, a, c))
        return true;
    if (m->block && rule_block(m, a, c))
        return true;
    if (m->stride && rule_stride(m->stride, a, c))
        return true;
    if (m->fixed && rule_fixed(m, c))
        return true;
    if (m->rect && rule_rect(m, a, c))
        return true;
    return m->global && (a < m->global || c < m->global);
}

/* Key blocks drawn for query blocks: earlier ones, later ones and none. */
static inline const int32_t *rule_random(void)
{
    static int32_t table[RULE_BLOCKS * RULE_RANDOM];

    for (int x = 0; x < RULE_BLOCKS * RULE_RANDOM; x++)
        table[x] = (int32_t)((x * 37 + 11) % (RULE_BLOCKS / 4)) - 1;
    return table;
}

enum { RULE_PATTERNS = 16 };
static inline struct mask rule_pattern(int n)
{
    struct mask patterns[RULE_PATTERNS] = {
        {.window = 5},
        {.window = 3, .dilation = 4},
        {.block = 6, .back = 1},
        {.block = 5},
        {.stride = 7},
        {.window = 4, .stride = 4},
        {.block = 6, .fixed = 6, .summary = 2},
        {.fixed = 4, .summary = 4},
        {.window = 3, .global = 17},
        {.block = 4, .back = 1, .global = 4, .n_random = RULE_RANDOM},
        {.block = 8, .n_random = RULE_RANDOM},
        {.fixed = 5},
        {.block = 5, .memory = 3},
        {.rect_rows = 2, .rect = 3, .row = 12, .margin_rows = 1, .margin = 2},
        {.rect_rows = 3, .rect = 2, .row = 4, .margin_rows = 3, .margin = 2},
        {.rect_rows = 2, .rect = 2, .row = 6, .global = 3},
    };

    patterns[n].random = rule_random();
    patterns[n].random_blocks = RULE_BLOCKS;
    return patterns[n];
}

/* SPDX-License-Identifier: MIT
 *
 * For tests of masks: the rules of a sparse mask as the library's judge has them, pair by pair, and a
 * few common patterns. Independent of ranges. */
#pragma once

#include "library_judge.h"
#include "variants/backends/library/fields.h"
#include "variants/backends/mask.h"

enum { RULE_BLOCKS = 128, RULE_RANDOM = 2 };

/* The mask of the library that hides the same. */
static inline struct ba_mask same_mask(const struct mask *x)
{
    return (struct ba_mask){SAME_IN_MASK(SAME).size = sizeof(struct ba_mask)};
}

static inline bool rule_visible(const struct mask *m, long a, long c)
{
    const struct ba_mask same = same_mask(m);

    return judge_shows(&same, a, c);
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

/* SPDX-License-Identifier: MIT
 *
 * Byte-pair encoding against its definition: look at all pairs, join the first of the lowest rank,
 * again. */
#include "harness/tokens/bpe.h"

#include "variants/base/rng.h"

#include <criterion/criterion.h>

enum { SMALLEST = 4, RULES = 40, LONGEST = 60 };

static size_t by_definition(int32_t *word, size_t n, const struct merge *rules)
{
    for (;;) {
        const struct merge *best = NULL;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            int r = 0;
            while (r < RULES && (rules[r].left != word[i] || rules[r].right != word[i + 1]))
                r++;
            if (r < RULES && (!best || rules[r].rank < best->rank)) {
                best = &rules[r];
                at = i;
            }
        }
        if (!best)
            return n;
        word[at] = best->joint;
        memmove(word + at + 1, word + at + 2, (n - at - 2) * sizeof(*word));
        n--;
    }
}

Test(bpe, any_rules_and_any_words)
{
    struct bpe_work work = {0};
    size_t joined = 0;

    for (uint64_t seed = 0; seed < 200; seed++) {
        struct merge rules[RULES];
        struct merges m;
        uint64_t k = 0;
        cr_assert_eq(merges_open(&m, RULES, NULL), OK);
        for (int r = 0; r < RULES; r++) { /* of what is there so far, as they are learned */
            rules[r] = (struct merge){
                .left = (int32_t)(rng_uniform(seed, 1, k) * (SMALLEST + r)),
                .right = (int32_t)(rng_uniform(seed, 2, k) * (SMALLEST + r)),
                .rank = seed % 2 ? r : r / 3, /* several of one rank: the leftmost counts */
                .joint = SMALLEST + r};
            k++;
            merges_put(&m, rules[r]);
        }
        for (int w = 0; w < 20; w++) {
            int32_t want[LONGEST];
            size_t n = 1 + (size_t)(rng_uniform(seed, 3, (uint64_t)w) * LONGEST), got = 0;
            cr_assert_eq(bpe_begin(&work, n, NULL), OK);
            for (size_t i = 0; i < n; i++, k++) {
                want[i] = (int32_t)(rng_uniform(seed, 4, k) * SMALLEST);
                bpe_add(&work, want[i]);
            }
            bpe_run(&work, &m);
            const size_t left = by_definition(want, n, rules);
            joined += n - left;
            for (int32_t i = 0; i >= 0; i = work.symbol[i].after, got++) {
                cr_assert_lt(got, left);
                cr_assert_eq(work.symbol[i].id, want[got], "seed %d word %d", (int)seed, w);
            }
            cr_assert_eq(got, left);
        }
        merges_free(&m);
    }
    cr_expect_gt(joined, 1000);
    bpe_free(&work);
}

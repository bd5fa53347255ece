/* SPDX-License-Identifier: MIT
 *
 * What a query sees: the rule of a pair against the single rules, runs of keys against the rule of
 * a pair, wherever a stream is cut, and pairs against counting. */
#include "tests/support/kernel/mask_rule.h"
#include "variants/base/rng.h"

#include <criterion/criterion.h>

enum { SEED = 20240817, CASES = 400, STREAM = 61 };

static int draw(uint64_t n, const char *what, int from, int to)
{
    return from + (int)(rng_u32(SEED, rng_stream(what), n) % (uint32_t)(to - from + 1));
}

/* Any mixture of the terms. */
static struct mask random_mask(uint64_t n)
{
    struct mask m = {.random = rule_random(), .random_blocks = RULE_BLOCKS};

    if (draw(n, "window?", 0, 1))
        m.window = draw(n, "window", 1, 9), m.dilation = draw(n, "dilation", 0, 4);
    if (draw(n, "block?", 0, 2) == 0)
        m.block = draw(n, "block", 1, 12), m.back = draw(n, "back", 0, 2);
    if (m.block && draw(n, "memory?", 0, 1))
        m.memory = draw(n, "memory", 1, 9);
    if (m.block >= 4 && draw(n, "random?", 0, 1))
        m.n_random = RULE_RANDOM;
    if (draw(n, "stride?", 0, 2) == 0)
        m.stride = draw(n, "stride", 1, 11);
    if (draw(n, "fixed?", 0, 2) == 0)
        m.fixed = draw(n, "fixed", 1, 11), m.summary = draw(n, "summary", 0, 5);
    if (draw(n, "global?", 0, 2) == 0)
        m.global = draw(n, "global", 1, 40);
    if (draw(n, "rect?", 0, 2) == 0) {
        m.rect_rows = draw(n, "rect rows", 1, 4), m.rect = draw(n, "rect", 1, 4);
        m.row = m.rect * draw(n, "row", 1, 4);
        m.margin_rows = draw(n, "margin rows", 0, 5), m.margin = draw(n, "margin", 0, 5);
    }
    return m;
}

/* Plain positions in one case of two, else pooled ones. */
static struct sight random_sight(uint64_t n, const struct mask *m)
{
    struct sight s = {
        .L = draw(n, "L", 1, 40),
        .causal = draw(n, "causal", 0, 2) != 0,
        .window = draw(n, "limit?", 0, 2) == 0 ? draw(n, "limit", 1, 50) : 0,
        .mask = draw(n, "mask?", 0, 4) ? m : NULL,
        .key = draw(n, "base", 0, 30),
        .query_step = 1,
        .key_step = 1,
    };
    const int M = draw(n, "M", 0, 40);

    s.K = s.L + M;
    s.query = s.key + M;
    if (draw(n, "steps?", 0, 1)) {
        s.query_step = draw(n, "query step", 1, 4);
        s.key_step = draw(n, "key step", 1, 4);
        s.query = s.key + draw(n, "first", 0, 50);
    }
    return s;
}

static bool by_rule(const struct sight *s, int i, int j)
{
    const long a = (long)s->query + i * s->query_step, c = (long)s->key + j * s->key_step;

    if ((s->causal && c > a) || (s->window && a - c >= s->window))
        return false;
    return !s->mask || rule_visible(s->mask, a, c);
}

static void expect_rule(const struct mask *m)
{
    for (int a = 0; a < STREAM; a++)
        for (int c = 0; c < STREAM; c++)
            cr_assert_eq(mask_visible(m, a, c), rule_visible(m, a, c),
                         "window %d/%d block %d/%d stride %d fixed %d/%d global %d rect %dx%d/%d "
                         "margin %dx%d: %d sees %d",
                         m->window, m->dilation, m->block, m->back, m->stride, m->fixed, m->summary,
                         m->global, m->rect_rows, m->rect, m->row, m->margin_rows, m->margin, a, c);
}

Test(mask, each_rule_and_their_union)
{
    for (int n = 0; n < RULE_PATTERNS; n++) {
        const struct mask m = rule_pattern(n);
        expect_rule(&m);
    }
    for (uint64_t n = 0; n < CASES; n++) {
        const struct mask m = random_mask(n);
        expect_rule(&m);
    }
}

/* A few by hand: query 10 of a causal stream. */
Test(mask, known_keys)
{
    static const struct {
        struct mask m;
        const char *keys; /* of 0..10 */
    } cases[] = {
        {{.window = 3}, "........xxx"},
        {{.window = 3, .dilation = 4}, "..x...x...x"},
        {{.block = 4, .back = 1}, "....xxxxxxx"},
        {{.block = 4}, "........xxx"},
        {{.block = 4, .memory = 2}, "......xxxxx"},
        {{.stride = 4}, "..x...x...x"},
        {{.window = 4, .stride = 4}, "..x...xxxxx"},
        {{.fixed = 4, .summary = 1}, "...x...x..x"},
        {{.block = 4, .fixed = 4, .summary = 2}, "..xx..xxxxx"},
        {{.window = 2, .global = 2}, "xx.......xx"},
        /* a picture of rows 0 1 4 5 and 2 3 6 7, below it 8 9 12 13 and 10 11 14 15 */
        {{.rect_rows = 2, .rect = 2, .row = 4}, "........xxx"},
        {{.rect_rows = 2, .rect = 2, .row = 4, .margin_rows = 1}, "..xx....xxx"},
        {{.rect_rows = 2, .rect = 2, .row = 4, .margin_rows = 1, .margin = 1}, "..xx..x.xxx"},
    };

    for (size_t n = 0; n < ARRAY_LEN(cases); n++)
        for (int j = 0; j <= 10; j++)
            cr_expect_eq(mask_visible(&cases[n].m, 10, j), cases[n].keys[j] == 'x',
                         "case %d, key %d", (int)n, j);
}

/* ---- runs --------------------------------------------------------------------------------- */

static bool any_sees(const struct sight *s, int i, int rows, int j)
{
    for (int x = i; x < i + rows; x++)
        if (by_rule(s, x, j))
            return true;
    return false;
}

static void expect_runs(uint64_t n, const struct sight *s, int i, int rows)
{
    const struct range hull = sight_hull(s, i, rows);
    bool seen[128] = {false};
    int end = -1;

    for (struct range r = {0}; sight_next(s, i, rows, &r); end = r.to) {
        cr_assert(r.from > end && r.to > r.from && r.to <= s->K,
                  "case %d: [%d, %d) after %d of %d keys", (int)n, r.from, r.to, end, s->K);
        cr_assert(r.from >= hull.from && r.to <= hull.to);
        for (int j = r.from; j < r.to; j++)
            seen[j] = true;
    }
    for (int j = 0; j < s->K; j++)
        cr_assert_eq(seen[j], any_sees(s, i, rows, j), "case %d: queries %d..%d, key %d", (int)n, i,
                     i + rows - 1, j);
    if (hull.from < hull.to && (s->mask || rows == 1))
        cr_assert(seen[hull.from] && seen[hull.to - 1], "case %d: the hull is too wide", (int)n);
}

Test(mask, runs_are_what_is_visible)
{
    for (uint64_t n = 0; n < CASES; n++) {
        const struct mask m = random_mask(n);
        const struct sight s = random_sight(n, &m);
        expect_runs(n, &s, 0, s.L);
        for (int i = 0; i < s.L; i++) {
            expect_runs(n, &s, i, 1);
            expect_runs(n, &s, i, min_int(s.L - i, draw(n, "rows", 1, 8)));
        }
    }
}

Test(mask, pairs_are_counted)
{
    for (uint64_t n = 0; n < CASES; n++) {
        const struct mask m = random_mask(n);
        const struct sight s = random_sight(n, &m);
        int pairs = 0;
        for (int i = 0; i < s.L; i++)
            for (int j = 0; j < s.K; j++) {
                pairs += by_rule(&s, i, j);
                cr_assert_eq(sight_visible(&s, i, j), by_rule(&s, i, j), "case %d", (int)n);
            }
        cr_expect_eq(sight_pairs(&s), pairs, "case %d", (int)n);
    }
}

/* ---- bits --------------------------------------------------------------------------------- */

static bool bit(const uint64_t *bits, int j) { return bits[j / 64] >> j % 64 & 1; }

/* The guard is the word after the last one of keys. */
static void expect_bits(uint64_t n, const struct sight *s, int i)
{
    enum { WORDS = 8 };
    const int words = bits_words(s->K);
    uint64_t bits[WORDS];

    cr_assert_lt(words, WORDS);
    memset(bits, 0xa5, sizeof(bits));
    sight_bits(s, i, bits);
    for (int j = 0; j < words * 64; j++)
        cr_assert_eq(bit(bits, j), j < s->K && by_rule(s, i, j), "case %d: query %d, key %d of %d",
                     (int)n, i, j, s->K);
    cr_expect_eq(bits[words], 0xa5a5a5a5a5a5a5a5);
}

/* Keys before several words, so that runs cross them; queries lie any step apart. */
Test(mask, bits_are_what_is_visible)
{
    for (uint64_t n = 0; n < CASES; n++) {
        const struct mask m = random_mask(n);
        struct sight s = random_sight(n, &m);
        s.K += draw(n, "more keys", 0, 150);
        s.key_step = 1;
        s.query += draw(n, "later", 0, 150);
        for (int i = 0; i < s.L; i++)
            expect_bits(n, &s, i);
    }
}

/* Groups of keys with one of them set, in order, up to an end. */
Test(mask, groups_of_bits_are_found)
{
    enum { WORDS = 5 };

    for (uint64_t n = 0; n < CASES; n++) {
        uint64_t bits[WORDS] = {0};
        const int group = 8 << draw(n, "group", 0, 2), end = draw(n, "end", 1, WORDS * 64);
        for (int x = draw(n, "set", 0, 40); x > 0; x--) {
            const int j = draw(64 * n + (uint64_t)x, "bit", 0, WORDS * 64 - 1);
            bits[j / 64] |= (uint64_t)1 << j % 64;
        }
        bool found[WORDS * 64] = {false};
        int last = -1;
        for (struct range r = {0}; bits_next(bits, group, end, &r); last = r.to) {
            cr_assert(r.from > last && r.from % group == 0 && r.to <= end);
            cr_assert(r.to % group == 0 || r.to == end);
            for (int j = r.from; j < r.to; j++)
                found[j] = true;
        }
        for (int j = 0; j < end; j++) {
            bool any = false;
            for (int x = j / group * group; x < (j / group + 1) * group; x++)
                any = any || bit(bits, x);
            cr_assert_eq(found[j], any, "case %d: key %d, groups of %d, end %d", (int)n, j, group,
                         end);
        }
    }
}

/* Given as bits: runs and rows of bits within causality and window are what the bits say. */
Test(mask, rows_are_what_was_given)
{
    enum { QUERIES = 9, KEYS = 131, WORDS = 3 };
    uint64_t rows[QUERIES * WORDS] = {0};
    const struct mask m = {.rows = rows, .row_words = WORDS};

    for (int x = 0; x < QUERIES * KEYS; x++)
        if (draw((uint64_t)x, "row", 0, 3) == 0 || x / KEYS == 3)
            rows[x / KEYS * WORDS + x % KEYS / 64] |= (uint64_t)1 << x % KEYS % 64;
    for (int turn = 0; turn < 3; turn++) {
        const struct sight s = {.L = QUERIES,
                                .K = KEYS,
                                .query_step = 1,
                                .key_step = 1,
                                .causal = turn == 1,
                                .window = turn == 2 ? 5 : 0,
                                .mask = &m};
        double pairs = 0;
        for (int i = 0; i < QUERIES; i++) {
            uint64_t bits[WORDS];
            struct range r = {0};
            bool more = sight_next(&s, i, 1, &r);
            sight_bits(&s, i, bits);
            for (int j = 0; j < KEYS; j++) {
                const bool want = rows[i * WORDS + j / 64] >> j % 64 & 1 && (turn != 1 || j <= i) &&
                                  (turn != 2 || i - j < 5);
                if (more && j >= r.to)
                    more = sight_next(&s, i, 1, &r);
                cr_assert_eq(sight_visible(&s, i, j), want, "turn %d: %d, %d", turn, i, j);
                cr_assert_eq(bits[j / 64] >> j % 64 & 1, want, "turn %d: %d, %d", turn, i, j);
                cr_assert_eq(more && j >= r.from && j < r.to, want, "turn %d: %d, %d", turn, i, j);
                pairs += want;
            }
        }
        cr_expect_eq(sight_pairs(&s), pairs);
        cr_expect_gt(pairs, 0);
    }
}

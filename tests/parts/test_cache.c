/* SPDX-License-Identifier: MIT
 *
 * The linear buffer of memories, against a list that only grows: thousands of appends of random
 * length, at random not committed; the first rows may stay. */
#include "harness/check/guarded.h"
#include "tests/support/failure.h"
#include "variants/parts/cache.h"

enum { WIDTH = 3, APPENDS = 4000 };

struct limits {
    int B, L, keep, stay; /* L is the longest append */
};

/* A cache in an arena of its own. */
static struct cache placed(struct arena *a, const struct limits *m)
{
    struct cache c;

    *a = (struct arena){0};
    cache_bind(&c, m->B, m->L, m->keep, WIDTH, a);
    const size_t counted = a->used;
    MUST(arena_place(a, HUGE_NEVER, NULL, NULL, &failure));
    cache_bind(&c, m->B, m->L, m->keep, WIDTH, a);
    cr_assert_eq(a->used, counted);
    c.stay = m->stay;
    memset(c.at, 0xff, sizeof(float) * (size_t)(c.B * c.cap * c.n)); /* NaN */
    return c;
}

/* What element e of row t of sequence b holds; below 2^24, so exact. */
static float value(int b, int t, int e) { return (float)((t * 4 + b) * WIDTH + e); }

static void write_rows(const struct cache *c, int first, int L)
{
    for (int b = 0; b < c->B; b++)
        for (int t = 0; t < L; t++)
            for (int e = 0; e < WIDTH; e++)
                cache_rows(c, b)[(c->M + t) * WIDTH + e] = value(b, first + t, e);
}

/* Rows [end - n, end) of the list are what the cache shows, oldest first, the first ones being the
 * first of the list if they stay. */
static bool shows(const struct cache *c, int end, int n)
{
    for (int b = 0; b < c->B; b++)
        for (int t = 0; t < n; t++)
            for (int e = 0; e < WIDTH; e++)
                if (cache_rows(c, b)[t * WIDTH + e] != value(b, t < c->stay ? t : end - n + t, e))
                    return false;
    return true;
}

static void expect_end_of_list(const struct limits *m)
{
    struct arena a;
    struct cache c = placed(&a, m);
    const uint64_t stream = rng_stream("appends");
    int length = 0;
    long copied = 0;

    cr_expect_eq(cache_stride(&c), (ptrdiff_t)c.cap * WIDTH);
    for (uint64_t n = 0; n < APPENDS; n++) {
        const int L = 1 + (int)(rng_u32(SEED, stream, 2 * n) % (uint32_t)m->L), M = c.M;
        const int start = c.start;
        cache_reserve(&c, L);
        copied += c.start < start ? M : 0;
        cr_assert(c.M == M && M == min_int(length, m->keep));
        cr_assert(c.start >= 0 && c.start + c.M + L <= c.cap, "no room for %d rows", L);
        write_rows(&c, length, L);
        cr_assert(shows(&c, length + L, M + L), "after %d rows, before commit", length);
        if (rng_u32(SEED, stream, 2 * n + 1) % 4 == 0)
            continue; /* not committed: the rows may be written again */
        cache_commit(&c, L);
        length += L;
        cr_assert_eq(c.M, min_int(length, m->keep));
        cr_assert(shows(&c, length, c.M), "after %d rows", length);
    }
    cr_expect_leq(copied, length, "%ld rows copied for %d appended", copied, length);
    cr_expect(m->keep == 0 || copied > 0 || length < c.cap, "the slack was never used up");
    cache_clear(&c);
    cr_expect(c.M == 0 && c.start == 0);
    arena_release(&a);
}

Test(cache, is_the_end_of_a_growing_list)
{
    static const int keeps[] = {0, 1, 5, 300, 1000};

    for (int B = 1; B <= 3; B += 2)
        for (int L = 1; L <= 7; L += 6)
            for (size_t k = 0; k < ARRAY_LEN(keeps); k++)
                for (int stay = 0; stay <= 4; stay += 2)
                    expect_end_of_list(&(struct limits){B, L, keeps[k], min_int(stay, keeps[k])});
}

/* A segment longer than mem_len leaves only its own newest rows. */
Test(cache, long_segment_leaves_its_newest_rows)
{
    const struct limits m = {.B = 2, .L = 9, .keep = 4};
    struct arena a;
    struct cache c = placed(&a, &m);

    cache_reserve(&c, 9);
    write_rows(&c, 0, 9);
    cache_commit(&c, 9);
    cr_expect_eq(c.M, 4);
    cr_expect(shows(&c, 9, 4));
    arena_release(&a);
}

/* Memory is keep rows exactly; new rows and slack are scratch. */
Test(cache, ledger)
{
    static const struct limits all[] = {
        {1, 1, 0, 0}, {3, 7, 0, 0}, {1, 7, 1, 1}, {2, 1, 300, 0}, {3, 64, 512, 4}};

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        struct arena a;
        const struct limits *m = &all[i];
        const struct cache c = placed(&a, m);
        const size_t row = (size_t)m->B * WIDTH * sizeof(float);
        const int slack = m->keep ? max_int(m->keep, 256) : 0;
        NUMBERS({a.part[PART_MEMORY], row * (size_t)m->keep},
                {a.part[PART_SCRATCH], row * (size_t)(m->L + slack)},
                {c.cap, m->keep + m->L + slack});
        arena_release(&a);
    }
}

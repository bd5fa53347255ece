/* SPDX-License-Identifier: MIT
 *
 * The arena: what is counted is what is placed, aligned, without overlap, and recorded. */
#include "tests/support/failure.h"
#include "variants/base/arena.h"

#include <signal.h>
#include <sys/mman.h>

static const size_t asked[] = {1, 0, 63, 64, 65, 4096, 100000, 7, 3 << 20};

/* Take every size for one part after the other, as a bind function would. */
static void take_all(struct arena *a, unsigned char *at[static ARRAY_LEN(asked)])
{
    for (size_t i = 0; i < ARRAY_LEN(asked); i++)
        at[i] = arena_take(a, (enum part)(i % PART_COUNT), asked[i]);
}

static void expect_same_ledger(const struct arena *a, const struct arena *b)
{
    cr_expect_eq(a->used, b->used);
    for (int p = 0; p < PART_COUNT; p++)
        cr_expect_eq(a->part[p], b->part[p], "part %d", p);
}

static void counts_what_it_places(enum huge_pages huge)
{
    unsigned char *at[ARRAY_LEN(asked)];
    struct arena a = {0};

    take_all(&a, at);
    cr_expect_null(a.base);
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) /* the same order as when placed */
        cr_expect(at[i] && (uintptr_t)at[i] % ARENA_ALIGN == 0, "take %zu while counting", i);
    const struct arena counted = a;

    MUST(arena_place(&a, huge, NULL, NULL, &failure));
    cr_expect_not_null(a.base);
    cr_expect_geq(a.size, counted.used);
    cr_expect_eq(a.used, 0);
    for (int p = 0; p < PART_COUNT; p++)
        cr_expect_eq(a.part[p], 0, "part %d", p);

    take_all(&a, at);
    expect_same_ledger(&a, &counted);
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        cr_expect_eq((uintptr_t)at[i] % ARENA_ALIGN, 0, "take %zu", i);
        cr_expect(at[i] >= a.base && at[i] + asked[i] <= a.base + a.size, "take %zu", i);
        memset(at[i], (int)i + 1, asked[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) /* no block overwrote another */
        for (size_t k = 0; k < asked[i]; k++)
            cr_assert_eq(at[i][k], i + 1, "take %zu, byte %zu", i, k);
    arena_release(&a);
    cr_expect_null(a.base);
    cr_expect_eq(a.used, 0);
    arena_release(&a); /* harmless */
}

Test(arena, counts_what_it_places) { counts_what_it_places(HUGE_NEVER); }
Test(arena, counts_what_it_places_on_huge_pages) { counts_what_it_places(HUGE_MADVISE); }

Test(arena, ledger_has_bytes_without_padding)
{
    struct arena a = {0};

    arena_take(&a, PART_SCORES, 1);
    arena_take(&a, PART_SCORES, 100);
    arena_f32(&a, PART_WEIGHTS, 3);
    NUMBERS({a.part[PART_SCORES], 101}, {a.part[PART_WEIGHTS], 12}, {a.part[PART_SCRATCH], 0},
            {a.used, 64 + 128 + 64});
}

Test(arena, huge_pages_are_aligned)
{
    const size_t two_mib = (size_t)2 << 20, sizes[] = {1, two_mib, two_mib + 1, 5 * two_mib - 64};

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct arena a = {0};
        arena_take(&a, PART_WEIGHTS, sizes[i]);
        MUST(arena_place(&a, HUGE_MADVISE, NULL, NULL, &failure));
        NUMBERS({(uintptr_t)a.base % two_mib, 0}, {a.size % two_mib, 0});
        memset(arena_take(&a, PART_WEIGHTS, sizes[i]), 1, sizes[i]);
        arena_release(&a);
    }
}

Test(arena, of_nothing_can_be_placed)
{
    struct arena a = {0};

    MUST(arena_place(&a, HUGE_NEVER, NULL, NULL, &failure));
    cr_expect_not_null(arena_take(&a, PART_WEIGHTS, 0));
    arena_release(&a);
}

struct seen {
    int calls;
    unsigned char *base;
    size_t size;
    enum status answer;
};

static enum status note(void *arg, void *base, size_t size, struct err *e)
{
    struct seen *seen = arg;

    seen->calls++;
    seen->base = base;
    seen->size = size;
    return seen->answer == OK ? OK : fail(e, seen->answer, "no such node");
}

Test(arena, binds_the_whole_mapping_once)
{
    struct seen seen = {0};
    struct arena a = {0};

    arena_take(&a, PART_WEIGHTS, 10000);
    MUST(arena_place(&a, HUGE_NEVER, note, &seen, &failure));
    NUMBERS({seen.calls, 1}, {seen.size, a.size});
    cr_expect_eq(seen.base, a.base);
    arena_release(&a);
}

Test(arena, passes_on_a_failed_bind)
{
    struct seen seen = {.answer = E_UNSUPPORTED};
    struct arena a = {0};

    arena_take(&a, PART_WEIGHTS, 10000);
    cr_expect_eq(arena_place(&a, HUGE_NEVER, note, &seen, &failure), E_UNSUPPORTED);
    cr_expect_str_eq(failure.msg, "no such node");
    cr_expect_null(a.base, "an arena that could not be bound is not placed");
    cr_expect_eq(msync(seen.base, 1, MS_ASYNC), -1, "its memory is still mapped");
    arena_release(&a);
}

Test(arena, too_large_is_no_memory)
{
    struct arena a = {0};

    arena_take(&a, PART_SCORES, (size_t)1 << 60); /* x86-64 has 2^47 bytes of addresses, or 2^56 */
    REFUSED(arena_place(&a, HUGE_NEVER, NULL, NULL, &failure), E_NOMEM, "  -> ");
    cr_expect_null(a.base);
}

Test(arena, taking_more_than_counted_stops, .signal = SIGABRT)
{
    struct arena a = {0};

    arena_take(&a, PART_WEIGHTS, 4096);
    if (arena_place(&a, HUGE_NEVER, NULL, NULL, &failure) != OK)
        return; /* no abort: the test fails */
    arena_take(&a, PART_WEIGHTS, 4096);
    arena_take(&a, PART_WEIGHTS, 1);
}

Test(arena, absurd_sizes_stop, .signal = SIGABRT)
{
    struct arena a = {0};

    arena_take(&a, PART_WEIGHTS, SIZE_MAX);
}

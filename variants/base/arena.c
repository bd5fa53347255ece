/* SPDX-License-Identifier: MIT
 *
 * The arena: a bump pointer with a ledger. */
#include "arena.h"

#include <sys/mman.h>

void *arena_take(struct arena *a, enum part part, size_t bytes)
{
    const size_t padded = round_up(bytes, ARENA_ALIGN);
    const size_t at = a->used;

    CHECK(bytes <= SIZE_MAX / 4 && at + padded >= at);
    a->part[part] += bytes;
    a->used += padded;
    if (!a->base)
        return (void *)(uintptr_t)(ARENA_ALIGN + at); /* counting: must not be dereferenced */
    CHECK(a->used <= a->size);
    return a->base + at;
}

float *arena_f32(struct arena *a, enum part part, size_t n)
{
    return arena_take(a, part, n * sizeof(float));
}

enum status arena_place(struct arena *a, enum huge_pages huge,
                        enum status (*bind)(void *arg, void *base, size_t size, struct err *e),
                        void *arg, struct err *e)
{
    const size_t two_mib = (size_t)2 << 20;
    const size_t size = round_up(a->used ? a->used : 1, huge == HUGE_MADVISE ? two_mib : 4096);
    /* Room to start at a huge-page boundary; the kernel backs only aligned 2 MiB ranges. */
    const size_t span = huge == HUGE_MADVISE ? size + two_mib : size;
    unsigned char *raw =
        mmap(NULL, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED)
        return fail(e, E_NOMEM, "cannot map %zu bytes  -> lower --seq, --mem or --batch", span);

    unsigned char *base = raw;
    if (huge == HUGE_MADVISE) {
        base = (unsigned char *)round_up((size_t)raw, two_mib);
        const size_t before = (size_t)(base - raw), after = two_mib - before;
        if (before)
            munmap(raw, before);
        if (after)
            munmap(base + size, after);
        madvise(base, size, MADV_HUGEPAGE); /* a hint: kernels without huge pages ignore it */
    }
    if (bind) {
        const enum status st = bind(arg, base, size, e);
        if (st != OK) {
            munmap(base, size);
            return st;
        }
    }
    *a = (struct arena){.base = base, .size = size};
    return OK;
}

void arena_release(struct arena *a)
{
    if (a->base)
        munmap(a->base, a->size);
    *a = (struct arena){0};
}

/* SPDX-License-Identifier: MIT
 *
 * One block of memory for a whole case, and a ledger of the bytes per purpose.
 *
 * Sizes come from running the same bind code twice: first over a counting arena (all zero), then
 * over a placed one. After bind nothing allocates. */
#pragma once

#include "base.h"

/* The columns of memory.csv, in order. */
#define ARENA_PARTS(X)                                                                             \
    X(WEIGHTS, weights)                                                                            \
    X(ACTIVATIONS, activations)                                                                    \
    X(MEMORY, memory_state)                                                                        \
    X(SCORES, scores)                                                                              \
    X(REL_POS, rel_pos)                                                                            \
    X(GRADIENTS, gradients)                                                                        \
    X(OPTIMIZER, optimizer)                                                                        \
    X(SCRATCH, backend_scratch)

enum part {
#define X(id, name) PART_##id,
    ARENA_PARTS(X)
#undef X
        PART_COUNT
};

enum { ARENA_ALIGN = 64 }; /* a cache line and a 512-bit vector */

struct arena {
    unsigned char *base;     /* NULL while counting */
    size_t size, used;       /* bytes; `used` includes padding to ARENA_ALIGN */
    size_t part[PART_COUNT]; /* bytes requested, without padding */
};

/* `bytes` of 64-byte aligned memory for `part`, uninitialised. While counting the pointer is
 * invalid but not NULL, so that code that tests for a term takes the same path both times. Aborts
 * if more is taken than was counted. */
void *arena_take(struct arena *a, enum part part, size_t bytes);
float *arena_f32(struct arena *a, enum part part, size_t n);

/* Placement. */
enum huge_pages { HUGE_NEVER, HUGE_MADVISE };

/* Map what `a` has counted and reset the ledger for the second bind. `bind` (may be NULL) is called
 * on the mapping before any page is touched, to place it on a NUMA node. E_NOMEM if the mapping
 * fails. */
enum status arena_place(struct arena *a, enum huge_pages huge,
                        enum status (*bind)(void *arg, void *base, size_t size, struct err *e),
                        void *arg, struct err *e);
void arena_release(struct arena *a);

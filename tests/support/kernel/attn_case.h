/* SPDX-License-Identifier: MIT
 *
 * For tests of attention: running it with scratch that starts as NaN. */
#pragma once

#include "harness/check/attn_operands.h"
#include "tests/support/open_engine.h"
#include "tests/support/sanitized.h"

/* The m-th further term with the t-th scheme: all pairs on small shapes, a third of them on each
 * large one; under sanitizers a third and a sixth. */
static inline bool in_turn(const struct shape *s, int t, int m)
{
    const bool small = s->L * (s->M + s->L) < 2000;

    return (t + m) % (small ? (SANITIZED ? 3 : 1) : SANITIZED ? 6 : 3) == 0;
}

/* Where the reference, the slowest, runs with three threads, too: each term and each shape with some others. */
static inline bool ref_shares(int s, int t, int m) { return (s + t + m) % 4 == 0; }

/* Run with scratch of exactly the size asked for, full of NaN. */
static inline void attend(const struct engine *g, const struct attn *a)
{
    const struct attn_impl *impl;

    MUST(engine_attn(g, a, &impl, &failure));
    const struct attn_need need = impl->need(a, g->threads);
    const size_t size = need.scores_bytes + need.scratch_bytes;
    unsigned char *scratch = aligned_alloc(64, round_up(size + 64, 64));
    cr_assert_not_null(scratch);
    memset(scratch, 0xff, round_up(size + 64, 64));
    impl->forward(g, a, scratch);
    for (int i = 0; i < 64; i++)
        cr_expect_eq(scratch[size + (size_t)i], 0xff, "scratch overrun");
    free(scratch);
}

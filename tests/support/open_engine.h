/* SPDX-License-Identifier: MIT
 *
 * An engine for a test. */
#pragma once

#include "failure.h"
#include "variants/backends/backend.h"
#include "variants/base/arena.h"

/* Work space of its products, until the process ends; for the threads that tests give it later, too. */
static inline void give_room(struct engine *g)
{
    enum { MOST = 16 };
    const int threads = g->threads;
    struct arena a = {0};

    cr_assert(threads <= MOST);
    g->threads = MOST;
    cr_assert_eq(engine_place(g, &a, NULL), OK);
    g->threads = threads;
}

/* `name` opened, or the test is skipped if it cannot run here. */
static inline struct engine open_engine(const char *name, int threads)
{
    struct engine g;
    const enum status st = engine_open(&g, name, threads, NULL, &failure);

    if (st == E_UNSUPPORTED)
        cr_skip_test("%s", failure.msg);
    cr_assert_eq(st, OK, "%s", failure.msg);
    give_room(&g);
    return g;
}

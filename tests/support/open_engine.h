/* SPDX-License-Identifier: MIT
 *
 * An engine for a test. */
#ifndef OPEN_ENGINE_H
#define OPEN_ENGINE_H

#include "variants/backends/backend.h"
#include "variants/base/arena.h"

#include <criterion/criterion.h>

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
    struct err e;
    const enum status st = engine_open(&g, name, threads, NULL, &e);

    if (st == E_UNSUPPORTED)
        cr_skip_test("%s", e.msg);
    cr_assert_eq(st, OK, "%s", e.msg);
    give_room(&g);
    return g;
}

#endif

/* SPDX-License-Identifier: MIT
 *
 * An engine for a test. */
#ifndef OPEN_ENGINE_H
#define OPEN_ENGINE_H

#include "variants/backends/backend.h"

#include <criterion/criterion.h>

/* `name` opened, or the test is skipped if it cannot run here. */
static inline struct engine open_engine(const char *name, int threads)
{
    struct engine g;
    struct err e;
    const enum status st = engine_open(&g, name, threads, NULL, &e);

    if (st == E_UNSUPPORTED)
        cr_skip_test("%s", e.msg);
    cr_assert_eq(st, OK, "%s", e.msg);
    return g;
}

#endif

/* SPDX-License-Identifier: MIT
 *
 * The rows of a table of which a test knows how many there are. */
#pragma once

#include "tests/support/program.h"

/* Those of a run in the test's folder, kept until the test ends; a failed assertion if there are more or fewer. */
static inline const void *must_rows(const char *run, enum table_id id, size_t n)
{
    const struct rows rows = must_read(run, id);

    cr_assert_eq(rows.n, n, "%s: %zu rows of %s, not %zu", run, rows.n, tables[id].name, n);
    return rows.row;
}

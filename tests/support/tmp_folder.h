/* SPDX-License-Identifier: MIT
 *
 * A folder of its own for each test, under /tmp, removed when the test is over. */
#ifndef TMP_FOLDER_H
#define TMP_FOLDER_H

#include "harness/util/fileio.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static char folder[64];

static inline void folder_make(void)
{
    snprintf(folder, sizeof(folder), "/tmp/bench_test_XXXXXX");
    cr_assert(mkdtemp(folder));
}

static inline void folder_remove(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    cr_assert_eq(system(command), 0); // NOLINT: a folder of our own
}

static inline void folder_path(char path[FILE_PATH], const char *name)
{
    cr_assert_eq(file_join(path, folder, name, NULL), OK);
}

#endif

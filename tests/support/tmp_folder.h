/* SPDX-License-Identifier: MIT
 *
 * A folder of its own for each test, removed when the test is over. It lies in memory where there
 * is room, else under /tmp: the tests sync thousands of files, which a slow disk takes minutes for.
 */
#pragma once

#include "failure.h"

#include <sys/statvfs.h>

extern char folder[64];

static inline void folder_make(void)
{
    static const char *const memory = "/dev/shm";
    const double needed = 1 << 30;
    struct statvfs fs;
    const bool room = access(memory, W_OK) == 0 && statvfs(memory, &fs) == 0 &&
                      (double)fs.f_bavail * (double)fs.f_frsize >= needed;

    snprintf(folder, sizeof(folder), "%s/bench_test_XXXXXX", room ? memory : "/tmp");
    cr_assert(mkdtemp(folder));
}

static inline void folder_remove(void)
{
    cr_assert_eq(system(kept_text("rm -rf '%s'", folder)), 0); // NOLINT: a folder of our own
}

static inline void folder_path(char path[FILE_PATH], const char *name)
{
    cr_assert_eq(file_join(path, folder, name, NULL), OK);
}

/* Kept until the test ends. */
static inline const char *in_folder(const char *name)
{
    char *const path = room(1, FILE_PATH);

    folder_path(path, name);
    return path;
}

/* A file of the folder. */
static inline void folder_put(const char *name, const void *data, size_t n)
{
    MUST(file_replace(in_folder(name), data, n, &failure));
}

static inline void folder_put_text(const char *name, const char *text)
{
    folder_put(name, text, strlen(text));
}

/* The bytes of a file there, kept until the test ends. */
static inline struct bytes folder_read(const char *name)
{
    struct bytes b = must_load(in_folder(name));
    kept(b.data);
    return b;
}

static inline bool folder_has(const char *name) { return access(in_folder(name), F_OK) == 0; }

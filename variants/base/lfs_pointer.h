/* SPDX-License-Identifier: MIT
 *
 * What a clone without Git LFS has in place of a large file: a few lines that name it. */
#pragma once

#include <stdbool.h>
#include <string.h>

#define LFS_POINTER_SAYS                                                                           \
    "a pointer of Git LFS, not the file that it names  -> git lfs pull, or fetch the file itself"

static inline bool is_lfs_pointer(const void *bytes, size_t n)
{
    static const char begin[] = "version https://git-lfs.github.com/spec/";

    return n >= sizeof(begin) - 1 && memcmp(bytes, begin, sizeof(begin) - 1) == 0;
}

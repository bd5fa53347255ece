/* SPDX-License-Identifier: MIT
 *
 * Loaded before the C library (LD_PRELOAD): a process that opens a file whose path contains
 * $DIES_AT is killed by a signal, as a mistake in what reads it would. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ISO C has no conversion from void * to a function; POSIX has it, for dlsym. */
#pragma GCC diagnostic ignored "-Wpedantic"

int open(const char *path, int flags, ...)
{
    const char *const at = getenv("DIES_AT");
    int (*const real)(const char *, int, ...) =
        (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    va_list rest;

    if (at && strstr(path, at))
        abort();
    va_start(rest, flags);
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return real(path, flags, mode);
}

/* What open becomes with fortified headers. */
int __open_2(const char *path, int flags); // NOLINT: the C library's name
int __open_2(const char *path, int flags) { return open(path, flags); } // NOLINT

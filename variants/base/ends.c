/* SPDX-License-Identifier: MIT
 *
 * What CHECK and NEED do in the program: say so, and end it; and memory that ends it so. The
 * library has an end of its own. */
#include "base.h"

_Noreturn void check_failed(const char *cond, const char *file, int line)
{
    fprintf(stderr, "bench: internal fault: %s (%s:%d)  -> please report it\n", cond, file, line);
    abort();
}

/* _Exit: a copy of a process must not write what its parent has buffered. */
_Noreturn void end_without_memory(void)
{
    fputs("bench: no memory  -> free some\n", stderr);
    _Exit(1);
}

void *need_room(size_t n, size_t size)
{
    void *const room = calloc(n, size);

    NEED(room);
    return room;
}

char *need_text(const char *fmt, ...)
{
    char *text;
    va_list ap;

    va_start(ap, fmt);
    NEED(vasprintf(&text, fmt, ap) >= 0);
    va_end(ap);
    return text;
}

/* SPDX-License-Identifier: MIT
 *
 * Error text, CHECK and NEED. */
#include "base.h"

#include "printable.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum status fail(struct err *e, enum status st, const char *fmt, ...)
{
    if (e) {
        char text[sizeof(e->msg)];
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        printable_copy(e->msg, sizeof(e->msg), text);
    }
    return st;
}

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

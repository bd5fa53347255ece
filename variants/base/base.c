/* SPDX-License-Identifier: MIT
 *
 * Error text. */
#include "base.h"

#include "printable.h"

#include <stdarg.h>
#include <stdio.h>

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

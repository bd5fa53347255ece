/* SPDX-License-Identifier: MIT
 *
 * From a status to the exit code that scripts rely on. */
#include "exit_code.h"

#include <stdio.h>

int exit_of(enum status st)
{
    switch (st) {
    case OK:
        return EXIT_FINE;
    case E_USAGE:
        return EXIT_BAD_USAGE;
    case E_UNSUPPORTED:
        return EXIT_UNAVAILABLE;
    case E_NOMEM:
    case E_CHILD:
    case E_TIMEOUT:
        return EXIT_SOME_FAILED;
    case E_IO:
        return EXIT_BAD_FILE;
    case E_WRONG:
        return EXIT_WRONG_NUMBERS;
    case E_INTERRUPTED:
        return EXIT_SIGINT;
    }
    return EXIT_SOME_FAILED;
}

int report_error(enum status st, const struct err *e)
{
    fprintf(stderr, "bench: %s\n", e->msg);
    return exit_of(st);
}

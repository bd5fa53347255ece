/* SPDX-License-Identifier: MIT
 *
 * The exit codes that scripts rely on. */
#pragma once

#include "variants/base/base.h"

enum exit_code {
    EXIT_FINE = 0,
    EXIT_SOME_FAILED = 1,
    EXIT_BAD_USAGE = 2,
    EXIT_REGRESSION = 3,
    EXIT_NOT_TRUSTWORTHY = 4,
    EXIT_WRONG_NUMBERS = 5,
    EXIT_UNAVAILABLE = 6,
    EXIT_BAD_FILE = 7,
    EXIT_NOTHING_TO_DO = 77,
    EXIT_SIGINT = 130,
    EXIT_SIGPIPE = 141,
    EXIT_SIGTERM = 143,
};

/* The meaning of each code, for the manual page; ends with a NULL. */
struct exit_meaning {
    int code;
    const char *meaning;
};
extern const struct exit_meaning exit_meanings[];

/* The exit code for a status that reached main. */
int exit_of(enum status st);

/* Print "bench: " and the message on stderr and return its exit code. */
int report_error(enum status st, const struct err *e);

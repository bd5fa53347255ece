/* SPDX-License-Identifier: MIT
 *
 * The exit code of each status. */
#include "exit_code.h"

#include "harness/util/text.h"

const struct exit_meaning exit_meanings[] = {
    {EXIT_FINE, "fine"},
    {EXIT_SOME_FAILED, "a case failed, or there was no memory; the other rows are written"},
    {EXIT_BAD_USAGE, "the command line is wrong"},
    {EXIT_REGRESSION, "gate: slower, or different in bytes, instructions or perplexity"},
    {EXIT_NOT_TRUSTWORTHY, "the numbers cannot be trusted: --strict, or another machine's"},
    {EXIT_WRONG_NUMBERS, "results differ from the reference"},
    {EXIT_UNAVAILABLE, "this CPU or build cannot do it"},
    {EXIT_BAD_FILE, "a file cannot be read or written"},
    {EXIT_NOTHING_TO_DO, "there was nothing to do"},
    {EXIT_SIGINT, "interrupted; what was measured is written"},
    {EXIT_SIGPIPE, "the reader of standard output closed it, as head does"},
    {EXIT_SIGTERM, "terminated; what was measured is written"},
    {0, NULL},
};

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
    text_line(stderr, "bench: %s", e->msg);
    return exit_of(st);
}

/* SPDX-License-Identifier: MIT
 *
 * A handler can only report through a global: the count, private to this file. */
#include "signals.h"

#include <signal.h>
#include <unistd.h>

static volatile int interruptions;
static volatile sig_atomic_t last;

static void on_signal(int number)
{
    last = number;
    interruptions++;
    if (interruptions > 1)
        _exit(128 + number);
}

const volatile int *signals_watch(void)
{
    const struct sigaction act = {.sa_handler = on_signal};

    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    signal(SIGPIPE, SIG_IGN);
    return &interruptions;
}

int signals_exit_code(void) { return 128 + (last ? (int)last : SIGINT); }

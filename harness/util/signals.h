/* SPDX-License-Identifier: MIT
 *
 * Ctrl-C and SIGTERM: the first ends every wait for a child, and the run writes what it has; the
 * second ends the program at once. */
#pragma once

/* Install the handlers; SIGPIPE becomes an error of write. Returns the number of interruptions,
 * which the handlers increment. */
const volatile int *signals_watch(void);

/* 130 after SIGINT, 143 after SIGTERM. */
int signals_exit_code(void);

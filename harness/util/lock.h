/* SPDX-License-Identifier: MIT
 *
 * One measuring bench per machine, by agreement: an advisory lock. */
#ifndef LOCK_H
#define LOCK_H

#include <stdbool.h>

/* Take the machine's lock until the process ends. False where another bench holds it; where no lock
 * file can be made there is nothing to wait for and the answer is true. */
bool lock_machine(void);

#endif

/* SPDX-License-Identifier: MIT
 *
 * One measuring bench per machine: an advisory lock. */
#ifndef LOCK_H
#define LOCK_H

#include <stdbool.h>

/* Take the machine's lock until the process ends. False if another bench holds it; true if no lock
 * file can be made. */
bool lock_machine(void);

#endif

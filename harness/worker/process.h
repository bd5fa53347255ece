/* SPDX-License-Identifier: MIT
 *
 * Starting processes and waiting for them. */
#pragma once

#include "variants/base/base.h"

#include <sys/types.h>

/* Start `program` (a path, or a name in PATH; NULL = this program again) with `keep` [n_keep] open
 * at descriptors 3, 4, ...; negative ones are left out. Children ignore SIGINT (the parent ends
 * them) and die with the parent. */
enum status process_exec(const char *program, char *const *argv, char *const *environment,
                         const int *keep, int n_keep, pid_t *pid, struct err *e);

/* The same for a copy of this process, which calls `run` and exits with its return value. */
enum status process_fork(int (*run)(void *arg), void *arg, pid_t *pid, struct err *e);

/* Wait for a child that has ended and say how: OK for exit 0, else E_CHILD with the text. */
enum status process_reap(pid_t pid, struct err *e);

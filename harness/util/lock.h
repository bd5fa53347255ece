/* SPDX-License-Identifier: MIT
 *
 * One process at a time: on files that only one may write, and measuring on a machine. The kernel
 * drops a lock when the process that holds it ends, in whatever way. */
#pragma once

#include "variants/base/base.h"

/* Held by this process, not by its children. All zero: not held. */
struct lock {
    char *path; /* malloc'ed */
    int fd;
};

/* Lock the file at `path`, made where it is missing; nothing else may open it. If another living
 * process holds it, E_UNSUPPORTED says that `what` is in use, and by which process. One that was
 * just killed may need a moment to be gone: it gets a second. */
enum status lock_take(struct lock *l, const char *path, const char *what, struct err *e);

/* Remove the file, and the lock with it. Does nothing if it is not held. */
void lock_release(struct lock *l);

/* Take the lock of the file at `path`, which other users may open too, until the process ends.
 * Never waits. */
enum lock_shared {
    LOCK_OURS,
    LOCK_ANOTHERS, /* a living process holds it */
    LOCK_NO_FILE,  /* the file can be neither opened nor made */
};
enum lock_shared lock_shared(const char *path);

/* The machine's: a file in /tmp, or in $TMPDIR where /tmp cannot be written. */
enum lock_shared lock_machine(void);

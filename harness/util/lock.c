/* SPDX-License-Identifier: MIT
 *
 * The lock is a file in the system's temporary folder; its descriptor stays open on purpose. */
#include "lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

bool lock_machine(void)
{
    const int fd =
        open("/tmp/bench-machine.lock", O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);

    return fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

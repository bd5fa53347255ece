/* SPDX-License-Identifier: MIT
 *
 * The lock is a file in the system's temporary folder, one for all users: $TMPDIR may be private to
 * a user. Its descriptor stays open on purpose. */
#include "lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

static const char path[] = "/tmp/bench-machine.lock";

/* Open without O_CREAT first: with O_CREAT the kernel refuses another user's file in a sticky
 * folder, even to root (fs.protected_regular). */
static int open_lock(void)
{
    enum { HOW = O_RDONLY | O_CLOEXEC | O_NOFOLLOW };
    int fd = open(path, HOW);

    if (fd < 0 && errno == ENOENT) {
        fd = open(path, HOW | O_CREAT | O_EXCL, 0444);
        if (fd >= 0)
            (void)fchmod(fd,
                         0444); /* regardless of the umask: other users must be able to open it */
        else if (errno == EEXIST)
            fd = open(path, HOW);
    }
    return fd;
}

bool lock_machine(void)
{
    const int fd = open_lock();

    return fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

/* SPDX-License-Identifier: MIT
 *
 * Locks on files are record locks: the kernel knows who holds one. The machine's is a file in the
 * system's temporary folder, one for all users; in $TMPDIR, which may be private to a user, only
 * where the former has none. Its descriptor stays open on purpose. */
#include "lock.h"

#include "fileio.h"

#include <fcntl.h>
#include <sys/file.h>
#include <time.h>

/* ---- files -------------------------------------------------------------------------------- */

/* Whoever may write the folder can put a pipe there: it is no lock, and nobody waits for it. */
static bool is_regular(int fd)
{
    struct stat s;

    return fstat(fd, &s) == 0 && S_ISREG(s.st_mode);
}

/* The one before may have removed the file between our opening and locking it. */
static bool still_there(int fd, const char *path)
{
    struct stat ours, there;

    return fstat(fd, &ours) == 0 && stat(path, &there) == 0 && ours.st_ino == there.st_ino &&
           ours.st_dev == there.st_dev;
}

/* Open and lock. 0, an errno, or EAGAIN with the process that holds it (0: it has just ended). */
static int try_to_lock(int *fd, const char *path, pid_t *holder)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int why;

    *holder = 0;
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (*fd < 0)
        return errno;
    if (!is_regular(*fd)) {
        close(*fd);
        return EINVAL;
    }
    if (fcntl(*fd, F_SETLK, &whole) == 0) {
        if (still_there(*fd, path))
            return 0;
        why = EAGAIN;
    } else {
        why = errno == EACCES ? EAGAIN : errno; /* POSIX allows either */
        if (why == EAGAIN && fcntl(*fd, F_GETLK, &whole) == 0 && whole.l_type != F_UNLCK)
            *holder = whole.l_pid;
    }
    close(*fd);
    return why;
}

enum status lock_take(struct lock *l, const char *path, const char *what, struct err *e)
{
    enum { STEP_MS = 10, TRIES = 100 };
    pid_t holder = 0;
    int why = EAGAIN;

    *l = (struct lock){.path = need_text("%s", path)};
    for (int i = 0; i < TRIES && why == EAGAIN; i++) {
        if (i > 0)
            nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000L}, NULL);
        why = try_to_lock(&l->fd, path, &holder);
    }
    if (why == 0)
        return OK;
    free(l->path);
    *l = (struct lock){0};
    if (why == EINVAL)
        return fail(e, E_IO, "cannot lock %s: not a regular file  -> remove it", path);
    if (why != EAGAIN)
        return file_fail(e, "lock", path, why);
    if (holder <= 0) /* on another machine, or one hands it to the next */
        return fail(e, E_UNSUPPORTED, "%s is in use  -> wait until its process has ended", what);
    return fail(e, E_UNSUPPORTED,
                "%s is in use by process %d  -> wait until it has ended, or stop it: kill %d", what,
                (int)holder, (int)holder);
}

void lock_release(struct lock *l)
{
    if (!l->path)
        return;
    unlink(l->path); /* while it is held: whoever opened it sees that it is gone, and tries again */
    close(l->fd);
    free(l->path);
    *l = (struct lock){0};
}

/* ---- the machine -------------------------------------------------------------------------- */

/* Open without O_CREAT first: with O_CREAT the kernel refuses another user's file in a sticky
 * folder, even to root (fs.protected_regular). */
static int open_shared(const char *path)
{
    enum { HOW = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK };
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

enum lock_shared lock_shared(const char *path)
{
    const int fd = open_shared(path);

    if (fd < 0)
        return LOCK_NO_FILE;
    if (is_regular(fd)) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return LOCK_OURS;
        if (errno == EWOULDBLOCK)
            return LOCK_ANOTHERS;
    }
    close(fd);
    return LOCK_NO_FILE;
}

enum lock_shared lock_machine(void)
{
    const char *const folders[] = {"/tmp", getenv("TMPDIR")};
    enum lock_shared got = LOCK_NO_FILE;
    char path[FILE_PATH];

    for (size_t i = 0; i < ARRAY_LEN(folders) && got == LOCK_NO_FILE; i++)
        if (folders[i] && *folders[i] &&
            file_join(path, folders[i], "bench-machine.lock", NULL) == OK)
            got = lock_shared(path);
    return got;
}

/* SPDX-License-Identifier: MIT
 *
 * Loaded before the C library (LD_PRELOAD): counts the calls that change files whose path contains
 * $FAULT_IN, and from call number $FAULT_AT on lets faults happen. $FAULT_HOW:
 *
 *     kill   that call never comes: the process is killed before it (halfway through a write)
 *     full   that call and all later ones that need room fail, as on a full disk
 *
 * stdio calls the kernel without these names: of streams, opening and flushing count. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* ISO C has no conversion from void * to a function; POSIX has it, for dlsym. */
#pragma GCC diagnostic ignored "-Wpedantic"

static int calls;

static bool watched(const char *path)
{
    const char *const in = getenv("FAULT_IN");

    return in && *in && path && strstr(path, in);
}

static bool watched_fd(int fd)
{
    char link[64], path[4096];

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, path, sizeof(path) - 1);
    path[n < 0 ? 0 : n] = '\0';
    return watched(path);
}

static bool killing(void) { return strcmp(getenv("FAULT_HOW"), "kill") == 0; }

/* Is this the call, or a later one? */
static bool due(void) { return ++calls >= atoi(getenv("FAULT_AT")); }

/* Before a call that needs no room. */
static void may_die(bool ours)
{
    if (ours && due() && killing())
        kill(getpid(), SIGKILL);
}

/* Before one that does: does it fail? */
static bool no_room(bool ours)
{
    if (!ours || !due())
        return false;
    if (killing())
        kill(getpid(), SIGKILL);
    errno = ENOSPC;
    return true;
}

int open(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return no_room((flags & O_CREAT) && watched(path)) ? -1 : REAL(open)(path, flags, mode);
}

FILE *fopen(const char *path, const char *how)
{
    return no_room(*how == 'w' && watched(path)) ? NULL : REAL(fopen)(path, how);
}

ssize_t write(int fd, const void *data, size_t n)
{
    if (!watched_fd(fd) || !due())
        return REAL(write)(fd, data, n);
    const ssize_t half = REAL(write)(fd, data, n / 2);
    if (killing())
        kill(getpid(), SIGKILL);
    return half;
}

int fflush(FILE *f) { return no_room(f && watched_fd(fileno(f))) ? EOF : REAL(fflush)(f); }

int fsync(int fd)
{
    may_die(watched_fd(fd));
    return REAL(fsync)(fd);
}

int fdatasync(int fd)
{
    may_die(watched_fd(fd));
    return REAL(fdatasync)(fd);
}

int ftruncate(int fd, off_t length)
{
    may_die(watched_fd(fd));
    return REAL(ftruncate)(fd, length);
}

int rename(const char *from, const char *to)
{
    may_die(watched(from) || watched(to));
    return REAL(rename)(from, to);
}

int unlink(const char *path)
{
    may_die(watched(path));
    return REAL(unlink)(path);
}

/* SPDX-License-Identifier: MIT
 *
 * Names of half-written files. */
#include "half.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define END ".tmp"
enum { DIGITS = 8, TRIES = 100 };

int half_create(char **half, const char *path)
{
    int fd = -1;

    *half = NULL;
    for (int i = 0; i < TRIES && fd < 0; i++) {
        unsigned own = (unsigned)getpid() + (unsigned)i; /* before the kernel has random numbers */
        (void)!getrandom(&own, sizeof(own), GRND_NONBLOCK);
        free(*half);
        if (asprintf(half, "%s.%0*x" END, path, DIGITS, own) < 0) {
            *half = NULL;
            errno = ENOMEM;
            return -1;
        }
        fd = open(*half, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    if (fd < 0) {
        const int why = errno;
        free(*half);
        *half = NULL;
        errno = why;
    }
    return fd;
}

int folder_sync(const char *dir)
{
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int why = fd < 0 || fsync(fd) != 0 ? errno : 0;

    if (why == EINVAL) /* some file systems cannot sync a folder */
        why = 0;
    if (fd >= 0)
        close(fd);
    return why;
}

/* To a stream of its own, which is closed. 0 or an errno. */
static int put_all(int fd, bool (*put)(FILE *f, const void *arg), const void *arg)
{
    FILE *const f = fdopen(fd, "wb");
    if (!f) {
        const int why = errno;
        close(fd);
        return why;
    }
    const bool ok = put(f, arg) && fflush(f) == 0 && fsync(fileno(f)) == 0;
    const int why = ok ? 0 : errno;
    return fclose(f) != 0 && ok ? errno : why;
}

int half_write(const char *path, bool (*put)(FILE *f, const void *arg), const void *arg)
{
    char *half;
    const int fd = half_create(&half, path);
    int why = fd < 0 ? errno : put_all(fd, put, arg);

    if (why == 0 && rename(half, path) != 0)
        why = errno;
    char *const copy = strdup(path);
    if (why == 0)
        why = copy ? folder_sync(dirname(copy)) : ENOMEM;
    else if (half)
        unlink(half);
    free(copy);
    free(half);
    return why;
}

static bool is_half_of(const char *name, const char *file)
{
    const size_t n = strlen(file);

    return strncmp(name, file, n) == 0 && name[n] == '.' &&
           strspn(name + n + 1, "0123456789abcdef") == DIGITS &&
           strcmp(name + n + 1 + DIGITS, END) == 0;
}

int half_clear(const char *path)
{
    char *const parent = strdup(path), *const copy = strdup(path);
    DIR *const d = parent && copy ? opendir(dirname(parent)) : NULL;
    int why = d || errno == ENOENT ? 0 : errno; /* in no folder there are none */
    const struct dirent *entry;

    while (d && (entry = readdir(d)))
        if (is_half_of(entry->d_name, basename(copy)) &&
            unlinkat(dirfd(d), entry->d_name, 0) != 0 && errno != ENOENT)
            why = errno;
    if (d)
        closedir(d);
    free(parent);
    free(copy);
    return why;
}

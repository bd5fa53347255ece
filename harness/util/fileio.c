/* SPDX-License-Identifier: MIT
 *
 * File operations with their error texts. */
#include "fileio.h"

#include "variants/base/half.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio_ext.h>

static const char *advice(int error)
{
    switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return "free some space, or give a folder on another disk with --out";
    case EACCES:
    case EPERM:
    case EROFS:
        return "give a folder that you may write with --out";
    case ENOTDIR:
        return "give a folder, such as that of the file";
    case ENOENT:
    case EISDIR:
    case EEXIST:
        return "check the path";
    case EMFILE:
    case ENFILE:
        return "allow more open files: ulimit -n 1024";
    case ENOMEM:
        return "free some memory";
    default:
        return "check the disk";
    }
}

enum status file_fail(struct err *e, const char *verb, const char *path, int error)
{
    return fail(e, E_IO, "cannot %s %s: %s  -> %s", verb, path, strerror(error), advice(error));
}

enum status file_join(char dst[FILE_PATH], const char *dir, const char *name, struct err *e)
{
    const int n = snprintf(dst, FILE_PATH, "%s/%s", dir, name);
    if (n < 0 || n >= FILE_PATH)
        return fail(e, E_IO, "path of %s is longer than %d bytes  -> give a shorter --out", name,
                    FILE_PATH - 1);
    return OK;
}

static enum status no_memory(struct err *e) { return fail(e, E_NOMEM, "no memory for a text"); }

/* Bytes to reserve for a text of n. */
static size_t room_for(size_t n)
{
    size_t room = 4096;

    while (room <= n)
        room *= 2;
    return room;
}

static ssize_t put_bytes(void *cookie, const char *data, size_t n)
{
    struct bytes *const b = cookie;
    const size_t room = room_for(b->n + n);

    if (room > room_for(b->n)) {
        char *const grown = realloc(b->data, room);
        if (!grown)
            return 0; /* sets the stream's error flag */
        b->data = grown;
    }
    memcpy(b->data + b->n, data, n);
    b->n += n;
    b->data[b->n] = '\0';
    return (ssize_t)n;
}

/* Not open_memstream: that of glibc loses text without an error if it cannot grow. */
FILE *bytes_open(struct bytes *out, struct err *e)
{
    *out = (struct bytes){.data = calloc(1, room_for(0))};
    FILE *const f =
        out->data ? fopencookie(out, "w", (cookie_io_functions_t){.write = put_bytes}) : NULL;
    if (!f) {
        free(out->data);
        out->data = NULL;
        no_memory(e);
    }
    return f;
}

enum status bytes_close(FILE *f, struct bytes *out, struct err *e)
{
    const bool bad = ferror(f) != 0;

    if (fclose(f) == 0 && !bad)
        return OK;
    free(out->data);
    *out = (struct bytes){0};
    return no_memory(e);
}

FILE *bytes_begin(struct bytes *out)
{
    FILE *const f = bytes_open(out, NULL);

    NEED(f);
    return f;
}

char *bytes_end(FILE *f, struct bytes *out)
{
    NEED(bytes_close(f, out, NULL) == OK);
    return out->data;
}

int file_open_regular(const char *path, const char **why)
{
    struct stat s;
    /* Without O_NONBLOCK, opening a pipe would wait for its writer. */
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    if (fd >= 0 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode))
        return fd;
    *why = fd < 0 ? strerror(errno) : "not a regular file";
    if (fd >= 0)
        close(fd);
    return -1;
}

enum status file_read(struct bytes *out, const char *path, struct err *e)
{
    char piece[1 << 14];
    ssize_t got;
    const char *why;
    const int fd = file_open_regular(path, &why);

    *out = (struct bytes){0};
    if (fd < 0)
        return fail(e, E_IO, "cannot read %s: %s  -> check the path", path, why);
    FILE *const f = bytes_open(out, e);
    if (!f) {
        close(fd);
        return E_NOMEM;
    }
    while ((got = read(fd, piece, sizeof(piece))) > 0 || (got < 0 && errno == EINTR))
        if (got > 0)
            fwrite(piece, 1, (size_t)got, f);
    const int error = got < 0 ? errno : 0;
    close(fd);
    enum status st = bytes_close(f, out, e);
    if (st == OK && error) {
        free(out->data);
        *out = (struct bytes){0};
        st = file_fail(e, "read", path, error);
    }
    return st;
}

bool file_key(const char *path, const char *key, char *buf, size_t size)
{
    char line[1024];
    bool found = false;
    FILE *const f = fopen(path, "re");

    buf[0] = '\0';
    if (!f)
        return false;
    while (!found && fgets(line, sizeof(line), f)) {
        if (strncmp(line, key, strlen(key)) != 0)
            continue;
        const char *const at = line + strlen(key);
        line[strcspn(line, "\n")] = '\0';
        snprintf(buf, size, "%s", at + strspn(at, " \t:="));
        found = true;
    }
    fclose(f);
    return found;
}

enum status file_sync_dir(const char *dir, struct err *e)
{
    const int why = folder_sync(dir);

    return why ? file_fail(e, "sync", dir, why) : OK;
}

enum status file_sync_parent(const char *path, struct err *e)
{
    char dir[FILE_PATH];

    file_parent(dir, path);
    return file_sync_dir(dir, e);
}

enum status file_move(const char *from, const char *to, struct err *e)
{
    return rename(from, to) == 0 ? file_sync_parent(to, e) : file_fail(e, "replace", to, errno);
}

bool file_is_folder(const char *path)
{
    struct stat s;

    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

void file_parent(char dir[FILE_PATH], const char *path)
{
    const char *const slash = strrchr(path, '/');
    const int n = slash && slash != path ? (int)(slash - path) : 1;

    snprintf(dir, FILE_PATH, "%.*s", n, slash ? path : ".");
}

enum status file_may_replace(const char *path, struct err *e)
{
    struct stat s;

    if (stat(path, &s) != 0 || S_ISREG(s.st_mode))
        return OK;
    if (S_ISDIR(s.st_mode))
        return file_fail(e, "replace", path, EISDIR);
    return fail(e, E_IO, "cannot replace %s: not a regular file  -> give another name", path);
}

static bool put_all(FILE *f, const void *arg)
{
    const struct bytes *const b = arg;

    return b->n == 0 || fwrite(b->data, b->n, 1, f) == 1;
}

enum status file_replace(const char *path, const void *data, size_t n, struct err *e)
{
    TRY(file_may_replace(path, e));
    const int why = half_write(path, put_all, &(struct bytes){(char *)data, n});
    return why ? file_fail(e, "write", path, why) : OK;
}

enum status file_copy(const char *from, const char *to, struct err *e)
{
    struct bytes file;

    TRY(file_read(&file, from, e));
    const enum status st = file_replace(to, file.data, file.n, e);
    free(file.data);
    return st;
}

enum status file_copy_into(const char *to, const char *from, const char *name, struct err *e)
{
    char source[FILE_PATH], target[FILE_PATH];

    TRY(file_join(source, from, name, e));
    TRY(file_join(target, to, name, e));
    return file_copy(source, target, e);
}

enum status file_make_folder(const char *path, struct err *e)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST ? OK : file_fail(e, "create", path, errno);
}

enum status file_flush(FILE *f, const char *name, struct err *e)
{
    errno = 0;
    if (fflush(f) == 0 && !ferror(f))
        return OK;
    const int why = errno ? errno : EIO;
    __fpurge(f); /* it is said once: what follows does not fail by what came before */
    clearerr(f);
    return file_fail(e, "write to", name, why);
}

bool file_reader_gone(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};

    return poll(&p, 1, 0) == 1 && p.revents & POLLERR;
}

enum status append_open(struct appender *a, const char *path, bool create, struct err *e)
{
    struct stat s = {0};
    const int flags =
        O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | (create ? O_CREAT | O_EXCL : 0);
    const size_t n = strlen(path);

    *a = (struct appender){.fd = -1};
    if (n >= sizeof(a->path))
        return file_fail(e, "open", path, ENAMETOOLONG);
    memcpy(a->path, path, n + 1);
    a->fd = open(path, flags, 0666); /* never waits for the reader of a pipe */
    if (a->fd < 0)
        return file_fail(e, create ? "create" : "open", path, errno);
    if (fstat(a->fd, &s) != 0 || !S_ISREG(s.st_mode)) {
        const int error = s.st_mode ? EINVAL : errno; /* a pipe, a device */
        append_close(a, NULL);
        return file_fail(e, "open", path, error);
    }
    a->end = s.st_size;
    return OK;
}

void append_write(struct appender *a, const void *data, size_t n)
{
    ssize_t put;

    if (a->st != OK)
        return;
    do
        put = write(a->fd, data, n);
    while (put < 0 && errno == EINTR);
    if (put == (ssize_t)n) {
        a->end += put;
        return;
    }
    /* errno is set only when nothing is written; on a full disk a regular file may take part of the
     * data. */
    const int error = put < 0 ? errno : ENOSPC;
    if (put > 0 && ftruncate(a->fd, a->end) != 0)
        a->st = fail(&a->why, E_IO,
                     "cannot cut %s back to its last whole line: %s  -> cut it at byte %lld",
                     a->path, strerror(errno), (long long)a->end);
    else
        a->st = file_fail(&a->why, "write", a->path, error);
}

void append_cut(struct appender *a, off_t end)
{
    if (a->st != OK || end >= a->end)
        return;
    if (ftruncate(a->fd, end) == 0)
        a->end = end;
    else
        a->st = file_fail(&a->why, "cut", a->path, errno);
}

void append_sync(struct appender *a)
{
    if (a->st == OK && fdatasync(a->fd) != 0)
        a->st = file_fail(&a->why, "write", a->path, errno);
}

enum status append_status(const struct appender *a, struct err *e)
{
    return a->st == OK ? OK : fail(e, a->st, "%s", a->why.msg);
}

enum status append_close(struct appender *a, struct err *e)
{
    const int fd = a->fd;

    a->fd = -1;
    if (fd >= 0 && close(fd) != 0 && a->st == OK)
        a->st = file_fail(&a->why, "write", a->path, errno);
    return append_status(a, e);
}

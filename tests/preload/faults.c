/* SPDX-License-Identifier: MIT
 *
 * Loaded before the C library (LD_PRELOAD): counts calls of the process that it is loaded into, and
 * lets call number $FAULT_AT go wrong. $FAULT_HOW says which calls count, and what happens:
 *
 *     kill        calls that change files: the process is killed before this one, and
 *                 halfway through it if it writes
 *     full        calls that need room on a disk: this one and all later ones fail
 *     KIND:ERRNO  calls of a kind: this one fails and has done nothing. KIND is a row of
 *                 kinds[], ERRNO one of errors[]
 *
 * Of kill and full, only files whose path contains $FAULT_IN count. Of the third, only calls that
 * the program asks for count: its own, and those of libraries that answer to an error (asking[]),
 * as seen by the first caller outside the C library. Others (libhwloc, libdnnl) crash without
 * memory, which the program cannot help. Children that are started by exec are spared.
 *
 * The machine's load is always 0, since a run asks for it to plan what it calls.
 *
 * $FAULT_COUNT names a file that holds the number of calls when the process ends. stdio calls the
 * kernel without these names: of streams, opening and flushing count. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

/* ISO C has no conversion from void * to a function; POSIX has it, for dlsym. */
#pragma GCC diagnostic ignored "-Wpedantic"

enum kind { KIND_OPEN, KIND_WRITE, KIND_NAME, KIND_SYNC, KIND_MAP, KIND_MEMORY, KIND_FORK, KINDS };

static const char *const kinds[KINDS] = {
    [KIND_OPEN] = "open",     /* whatever gives a descriptor */
    [KIND_WRITE] = "write",   /* to a file, or flushing a stream */
    [KIND_NAME] = "name",     /* renaming, linking, removing, making a folder */
    [KIND_SYNC] = "sync",     /* making durable, cutting */
    [KIND_MAP] = "map",       /* mmap */
    [KIND_MEMORY] = "memory", /* malloc and its relatives */
    [KIND_FORK] = "fork",
};

static const struct {
    const char *name;
    int number;
} errors[] = {
    {"EAGAIN", EAGAIN}, {"EIO", EIO}, {"EMFILE", EMFILE}, {"ENOMEM", ENOMEM}, {"ENOSPC", ENOSPC},
};

static enum { OFF, KILL, FULL, FAIL } how;
static enum kind kind; /* of FAIL */
static int number;     /* its errno */
static int at;
static atomic_int calls;
static _Thread_local bool inside;

/* ---- who asks ----------------------------------------------------------------------------- */

static const char *const asking[] = {"/libjansson.", "/libcsv.", "/libzstd."};

/* Code of the program and of libraries that count (asks), and of the C library and this one, whose
 * caller decides. */
static struct range {
    uintptr_t from, to;
    bool asks;
} ranges[64];
static int n_ranges;

static int note_code(struct dl_phdr_info *info, size_t size, void *arg)
{
    const char *const name = info->dlpi_name ? info->dlpi_name : "";
    const bool program = n_ranges == 0; /* comes first */
    bool asks = program, passes = strstr(name, "/libc.so") || strstr(name, "/faults.so");

    for (size_t i = 0; i < LENGTH(asking); i++)
        asks = asks || strstr(name, asking[i]);
    for (int i = 0; (asks || passes) && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *const p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || n_ranges == (int)LENGTH(ranges))
            continue;
        const uintptr_t from = info->dlpi_addr + p->p_vaddr;
        ranges[n_ranges++] = (struct range){from, from + p->p_memsz, asks};
    }
    return 0;
}

static const struct range *range_of(const void *address)
{
    for (int i = 0; i < n_ranges; i++)
        if ((uintptr_t)address >= ranges[i].from && (uintptr_t)address < ranges[i].to)
            return &ranges[i];
    return NULL;
}

/* Has the program asked for this call? */
static bool asked(void)
{
    void *frame[16];
    const int n = backtrace(frame, LENGTH(frame));

    for (int i = 0; i < n; i++) {
        const struct range *const r = range_of(frame[i]);
        if (!r || r->asks)
            return r != NULL;
    }
    return false;
}

/* ---- beginning and end -------------------------------------------------------------------- */

static void choose(const char *text)
{
    const size_t n = strcspn(text, ":");

    if (strcmp(text, "kill") == 0)
        how = KILL;
    else if (strcmp(text, "full") == 0)
        how = FULL;
    for (int k = 0; text[n] && k < KINDS; k++)
        for (size_t i = 0; i < LENGTH(errors); i++)
            if (strlen(kinds[k]) == n && memcmp(kinds[k], text, n) == 0 &&
                strcmp(errors[i].name, text + n + 1) == 0) {
                how = FAIL;
                kind = (enum kind)k;
                number = errors[i].number;
            }
    if (how == OFF) {
        fprintf(stderr, "faults.so: FAULT_HOW is %s\n", text);
        _exit(126);
    }
}

__attribute__((constructor)) static void begin(void)
{
    void *frame[1];

    unsetenv("LD_PRELOAD"); /* children of exec */
    if (!getenv("FAULT_AT") || !getenv("FAULT_HOW"))
        return;
    inside = true;
    backtrace(frame, 1); /* loads the unwinder, which takes memory */
    dl_iterate_phdr(note_code, NULL);
    at = atoi(getenv("FAULT_AT"));
    choose(getenv("FAULT_HOW"));
    inside = false;
}

__attribute__((destructor)) static void end(void)
{
    const char *const path = getenv("FAULT_COUNT");
    char text[16];

    inside = true;
    if (!path || how == OFF)
        return;
    const int fd = REAL(open)(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0 || REAL(write)(fd, text, (size_t)sprintf(text, "%d\n", calls)) < 0)
        _exit(126);
    REAL(close)(fd);
}

/* ---- does it go wrong? -------------------------------------------------------------------- */

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

/* Does this call of kind k fail? */
static bool fails(enum kind k)
{
    if (how != FAIL || k != kind || inside)
        return false;
    inside = true;
    const bool due = asked() && ++calls == at;
    inside = false;
    if (due)
        errno = number;
    return due;
}

/* Is this the call, or a later one? */
static bool due(bool ours) { return (how == KILL || how == FULL) && ours && ++calls >= at; }

/* Before a call that needs no room. */
static void may_die(bool ours)
{
    if (due(ours) && how == KILL)
        kill(getpid(), SIGKILL);
}

/* Before one that does: does it fail? */
static bool no_room(bool ours)
{
    if (!due(ours))
        return false;
    if (how == KILL)
        kill(getpid(), SIGKILL);
    errno = ENOSPC;
    return true;
}

/* ---- files -------------------------------------------------------------------------------- */

int open(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    if (fails(KIND_OPEN) || no_room((flags & O_CREAT) && watched(path)))
        return -1;
    return REAL(open)(path, flags, mode);
}

/* What open becomes with fortified headers. */
int __open_2(const char *path, int flags); // NOLINT: the C library's name
int __open_2(const char *path, int flags) { return open(path, flags); } // NOLINT

FILE *fopen(const char *path, const char *mode)
{
    if (fails(KIND_OPEN) || no_room(*mode == 'w' && watched(path)))
        return NULL;
    return REAL(fopen)(path, mode);
}

DIR *opendir(const char *path) { return fails(KIND_OPEN) ? NULL : REAL(opendir)(path); }

int scandir(const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
            int (*order)(const struct dirent **, const struct dirent **))
{
    return fails(KIND_OPEN) ? -1 : REAL(scandir)(path, list, filter, order);
}

int memfd_create(const char *name, unsigned flags)
{
    return fails(KIND_OPEN) ? -1 : REAL(memfd_create)(name, flags);
}

int socketpair(int domain, int type, int protocol, int ends[2])
{
    return fails(KIND_OPEN) ? -1 : REAL(socketpair)(domain, type, protocol, ends);
}

ssize_t write(int fd, const void *data, size_t n)
{
    if (fails(KIND_WRITE))
        return -1;
    if (!due(watched_fd(fd)))
        return REAL(write)(fd, data, n);
    const ssize_t half = REAL(write)(fd, data, n / 2);
    if (how == KILL)
        kill(getpid(), SIGKILL);
    return half;
}

int fflush(FILE *f)
{
    return fails(KIND_WRITE) || no_room(f && watched_fd(fileno(f))) ? EOF : REAL(fflush)(f);
}

int fsync(int fd)
{
    may_die(watched_fd(fd));
    return fails(KIND_SYNC) ? -1 : REAL(fsync)(fd);
}

int fdatasync(int fd)
{
    may_die(watched_fd(fd));
    return fails(KIND_SYNC) ? -1 : REAL(fdatasync)(fd);
}

int ftruncate(int fd, off_t length)
{
    may_die(watched_fd(fd));
    return fails(KIND_SYNC) ? -1 : REAL(ftruncate)(fd, length);
}

int rename(const char *from, const char *to)
{
    may_die(watched(from) || watched(to));
    return fails(KIND_NAME) ? -1 : REAL(rename)(from, to);
}

int unlink(const char *path)
{
    may_die(watched(path));
    return fails(KIND_NAME) ? -1 : REAL(unlink)(path);
}

int symlink(const char *to, const char *path)
{
    return fails(KIND_NAME) ? -1 : REAL(symlink)(to, path);
}

int mkdir(const char *path, mode_t mode) { return fails(KIND_NAME) ? -1 : REAL(mkdir)(path, mode); }

/* ---- memory and processes ----------------------------------------------------------------- */

/* dlsym may ask for memory itself: the C library has these names for its own functions. */
void *__libc_malloc(size_t n);                 // NOLINT
void *__libc_calloc(size_t n, size_t size);    // NOLINT
void *__libc_realloc(void *old, size_t n);     // NOLINT
void *__libc_memalign(size_t align, size_t n); // NOLINT

void *malloc(size_t n) { return fails(KIND_MEMORY) ? NULL : __libc_malloc(n); }

void *calloc(size_t n, size_t size) { return fails(KIND_MEMORY) ? NULL : __libc_calloc(n, size); }

void *realloc(void *old, size_t n) { return fails(KIND_MEMORY) ? NULL : __libc_realloc(old, n); }

void *aligned_alloc(size_t align, size_t n)
{
    return fails(KIND_MEMORY) ? NULL : __libc_memalign(align, n);
}

void *mmap(void *where, size_t n, int access, int flags, int fd, off_t offset)
{
    return fails(KIND_MAP) ? MAP_FAILED : REAL(mmap)(where, n, access, flags, fd, offset);
}

pid_t fork(void) { return fails(KIND_FORK) ? -1 : REAL(fork)(); }

/* ---- other programs ----------------------------------------------------------------------- */

/* None run: which calls a run makes must not follow from how busy the machine is. */
int getloadavg(double load[], int n)
{
    for (int i = 0; i < n; i++)
        load[i] = 0;
    return n;
}

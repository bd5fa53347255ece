/* SPDX-License-Identifier: MIT
 *
 * Address space for OpenBLAS. Its initialiser, which runs before main, reserves a buffer per thread and
 * tries again for ever if the system refuses one (ulimit -v): every command would hang. So whoever starts
 * before the initialisers of libraries tries first. */
#include "exit_code.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

/* Sanitizers reserve more, and their runtime is not ready this early. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define INSTRUMENTED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define INSTRUMENTED
#endif

#if HAVE_OPENBLAS && !defined(INSTRUMENTED)

enum { BUFFER = 128 << 20, MOST = 1024 }; /* bytes of a thread; threads */

/* As many as OpenBLAS starts: a CPU each, unless OMP_NUM_THREADS asks for fewer. getenv knows nothing
 * yet. */
static int threads(char **environment)
{
    static const char name[] = "OMP_NUM_THREADS=";
    int n = 0;

    for (; *environment; environment++)
        if (strncmp(*environment, name, strlen(name)) == 0)
            n = atoi(*environment + strlen(name)); // NOLINT(cert-err34-c): 0 if it is no number
    cpu_set_t set;
    const int cpus = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    const int all = n > 0 && n < cpus ? n : cpus;

    return all < MOST ? all : MOST;
}

static void try_buffers(int argc, char **argv, char **environment)
{
    static const char line[] = "bench: too little address space for OpenBLAS, 128 MiB per thread  "
                               "-> raise ulimit -v, or set OMP_NUM_THREADS\n";
    static void *buffer[MOST];
    const int n = threads(environment);
    int got = 0;

    while (got < n && (buffer[got] = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED)
        got++;
    for (int i = 0; i < got; i++)
        munmap(buffer[i], BUFFER);
    if (got == n)
        return;
    (void)!write(STDERR_FILENO, line, sizeof(line) - 1);
    _exit(exit_of(E_NOMEM));
}

__attribute__((section(".preinit_array"),
               used)) static void (*const before_libraries)(int, char **, char **) = try_buffers;

#endif

/* SPDX-License-Identifier: MIT
 *
 * Peaks across a process border: the parent computes nothing, so that no thread pool of its own
 * ever meets a measurement. The child is `PROGRAM peak ...` and answers with one line. */
#include "peak.h"

#include "env.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PREFIX "bench-peaks/1"

/* X(name, member) in the order of the line. */
#define FIELDS(X)                                                                                  \
    X("ref", flops[ISA_BASE])                                                                      \
    X("avx2", flops[ISA_AVX2])                                                                     \
    X("avx512", flops[ISA_AVX512])                                                                 \
    X("l1", l1)                                                                                    \
    X("l2", l2)                                                                                    \
    X("l3", l3)                                                                                    \
    X("dram", dram)

void peaks_format(const struct peaks *p, char *buf, size_t size)
{
    size_t used = (size_t)snprintf(buf, size, PREFIX " threads=%d", p->threads);

#define X(name, member)                                                                            \
    if (used < size)                                                                               \
        used += (size_t)snprintf(buf + used, size - used, " " name "=%.0f", p->member);
    FIELDS(X)
#undef X
}

/* Read " name=NUMBER" at *at and step over it. */
static bool read_field(const char **at, const char *name, double *value)
{
    const size_t n = strlen(name);
    char *end;

    if (**at != ' ' || strncmp(*at + 1, name, n) != 0 || (*at)[n + 1] != '=')
        return false;
    *value = strtod(*at + n + 2, &end);
    if (end == *at + n + 2 || !(*value >= 0 && *value < 1e18))
        return false;
    *at = end;
    return true;
}

enum status peaks_parse(struct peaks *p, const char *line, struct err *e)
{
    const char *at = line + strlen(PREFIX);
    double threads = 0;
    bool good = strncmp(line, PREFIX, strlen(PREFIX)) == 0 && read_field(&at, "threads", &threads);

    *p = (struct peaks){.threads = (int)threads};
#define X(name, member) good = good && read_field(&at, name, &p->member);
    FIELDS(X)
#undef X
    if (!good || *at != '\0' || p->threads < 1)
        return fail(e, E_CHILD,
                    "the peak measurement answered \"%.200s\"  -> both programs must be the same "
                    "build",
                    line);
    return OK;
}

/* Start the child with its stdout in a pipe; *out is our end. */
static enum status start(const char *program, const char *const *argv, int *out, pid_t *pid,
                         struct err *e)
{
    posix_spawn_file_actions_t actions;
    char **envp;
    int fd[2], error;
    enum status st = env_child_environment(environ, NULL, NULL, &envp, e);

    if (st != OK)
        return st;
    if (pipe2(fd, O_CLOEXEC) != 0) {
        env_free(envp);
        return fail(e, E_CHILD, "no pipe for the peak measurement (%s)  -> raise ulimit -n",
                    strerror(errno));
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd[1], STDOUT_FILENO);
    error = posix_spawn(pid, program, &actions, NULL, (char *const *)argv, envp);
    posix_spawn_file_actions_destroy(&actions);
    env_free(envp);
    close(fd[1]);
    *out = fd[0];
    if (error == 0)
        return OK;
    close(fd[0]);
    return fail(e, E_CHILD, "cannot start %s (%s)  -> --isolate none measures in this process",
                program, strerror(error));
}

/* Everything until end of file, cut to the buffer, without the last LF. */
static void read_answer(int fd, char *buf, size_t size)
{
    char rest[256];
    size_t n = 0;

    for (;;) {
        const bool room = n + 1 < size;
        const ssize_t got = read(fd, room ? buf + n : rest, room ? size - 1 - n : sizeof(rest));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        if (room)
            n += (size_t)got;
    }
    buf[n] = '\0';
    if (n > 0 && buf[n - 1] == '\n')
        buf[n - 1] = '\0';
}

static enum status how_it_ended(pid_t pid, struct err *e)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return fail(e, E_CHILD, "lost the peak measurement (%s)  -> run again",
                        strerror(errno));
    if (WIFSIGNALED(status))
        return fail(
            e, WTERMSIG(status) == SIGINT || WTERMSIG(status) == SIGTERM ? E_INTERRUPTED : E_CHILD,
            "the peak measurement died of signal %d (%s)  -> bench topo --roofline "
            "repeats it",
            WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) != 0)
        return fail(e, E_CHILD,
                    "the peak measurement ended with exit code %d  -> bench topo --roofline "
                    "repeats it",
                    WEXITSTATUS(status));
    return OK;
}

enum status peaks_measure(const char *program, int threads, const int *cpus, enum isa most,
                          struct peaks *out, struct err *e)
{
    enum { ANSWER = 512, LIST = 4096 };
    char count[16], answer[ANSWER], list[LIST] = "none";
    const char *const argv[] = {"bench", "peak",      "--threads",    count, "--pin",
                                list,    "--max-isa", isa_name[most], NULL};
    pid_t pid = -1;
    int fd = -1;
    enum status st;

    snprintf(count, sizeof(count), "%d", threads);
    if (cpus[0] >= 0)
        topo_format_cpus(cpus, threads, list, sizeof(list));
    st = start(program ? program : "/proc/self/exe", argv, &fd, &pid, e);
    if (st != OK)
        return st;
    read_answer(fd, answer, sizeof(answer));
    close(fd);
    st = how_it_ended(pid, e);
    if (st == OK)
        st = peaks_parse(out, answer, e);
    if (st == OK && out->threads != threads)
        st =
            fail(e, E_CHILD,
                 "the peak measurement used %d threads instead of %d  -> both programs must be the "
                 "same build",
                 out->threads, threads);
    return st;
}

/* SPDX-License-Identifier: MIT
 *
 * Runs of a command line, timed from outside. */
#include "ab_run.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* A long run is preempted now and then: that many times it has no meaning, in ns for each. */
static const double USUAL_SWITCH_NS = 100e6;

/* In a process group of its own, which ends with what the shell started. */
static enum status start(pid_t *pid, const char *line, struct err *e)
{
    char shell[] = "/bin/sh", option[] = "-c", text[FILE_PATH];
    char *const argv[] = {shell, option, text, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t own;

    text_put(text, sizeof(text), line);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    posix_spawnattr_init(&own);
    posix_spawnattr_setflags(&own, POSIX_SPAWN_SETPGROUP);
    const int error = posix_spawn(pid, shell, &files, &own, argv, environ);
    posix_spawnattr_destroy(&own);
    posix_spawn_file_actions_destroy(&files);
    return error ? fail(e, E_CHILD, "cannot start %s: %s", shell, strerror(error)) : OK;
}

static enum status run_once(const struct plain *p, struct sample *out, struct err *e)
{
    const int64_t begin = clock_wall_ns();
    struct rusage used;
    pid_t pid;
    int how;

    TRY(start(&pid, p->line, e));
    while (wait4(pid, &how, 0, &used) < 0) /* a signal */
        if (*p->stop)
            kill(-pid, SIGTERM);
    const double wall_ns = (double)(clock_wall_ns() - begin);
    if (*p->stop)
        return fail(e, E_INTERRUPTED, "interrupted");
    if (!WIFEXITED(how) || WEXITSTATUS(how) != 0)
        return fail(e, E_CHILD, "ended with %s %d  -> run it by hand: %.300s",
                    WIFEXITED(how) ? "exit code" : "signal",
                    WIFEXITED(how) ? WEXITSTATUS(how) : WTERMSIG(how), p->line);
    out->wall_ns += wall_ns;
    out->cpu_ns += 1e9 * (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                   1e3 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    if ((double)used.ru_nivcsw > wall_ns / USUAL_SWITCH_NS)
        out->involuntary_switches += (uint32_t)used.ru_nivcsw;
    return OK;
}

enum status plain_block(void *plain, uint32_t calls, bool prime, struct sample *out, struct err *e)
{
    (void)prime; /* each process begins cold */
    for (uint32_t i = 0; i < calls; i++)
        TRY(run_once(plain, out, e));
    return OK;
}

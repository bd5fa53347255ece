/* SPDX-License-Identifier: MIT
 *
 * Fork, exec, wait. */
#include "process.h"

#include "harness/cli/exit_code.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the new process: die with the parent, and leave Ctrl-C to the parent. */
static void become_child(pid_t parent)
{
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_SOME_FAILED);
}

/* Move `keep` to descriptors 3, 4, ... without overwriting one that is still to be moved. */
static void arrange(const int *keep, int n_keep)
{
    enum { FIRST = 3, KEEP_MAX = 4 };
    int away[KEEP_MAX];

    CHECK(n_keep <= KEEP_MAX);
    for (int i = 0; i < n_keep; i++) {
        away[i] = keep[i] < 0 ? -1 : fcntl(keep[i], F_DUPFD_CLOEXEC, FIRST + n_keep);
        if (keep[i] >= 0 && away[i] < 0)
            _exit(EXIT_SOME_FAILED);
    }
    for (int i = 0; i < n_keep; i++)
        if (away[i] >= 0 && dup2(away[i], FIRST + i) < 0) /* dup2 clears close-on-exec */
            _exit(EXIT_SOME_FAILED);
}

/* Fork. In the new process (*pid = 0) the set-up of a child is done. */
static enum status split(pid_t *pid, struct err *e)
{
    const pid_t parent = getpid();

    *pid = fork();
    if (*pid < 0)
        return fail(e, E_CHILD, "cannot start a child process: %s", strerror(errno));
    if (*pid == 0)
        become_child(parent);
    return OK;
}

enum status process_exec(const char *program, char *const *argv, char *const *environment,
                         const int *keep, int n_keep, pid_t *pid, struct err *e)
{
    const enum status st = split(pid, e);

    if (st != OK || *pid > 0)
        return st;
    arrange(keep, n_keep);
    execvpe(program ? program : "/proc/self/exe", argv, environment);
    _exit(EXIT_SOME_FAILED);
}

enum status process_fork(int (*run)(void *arg), void *arg, pid_t *pid, struct err *e)
{
    const enum status st = split(pid, e);

    if (st != OK || *pid > 0)
        return st;
    _exit(run(arg));
}

enum status process_reap(pid_t pid, struct err *e)
{
    int how = 0;

    while (waitpid(pid, &how, 0) < 0)
        if (errno != EINTR)
            return fail(e, E_CHILD, "child process lost: %s", strerror(errno));
    if (WIFSIGNALED(how))
        return fail(e, E_CHILD, "killed by SIG%s%s", sigabbrev_np(WTERMSIG(how)),
                    WTERMSIG(how) == SIGKILL ? " (out of memory?)" : "");
    if (WEXITSTATUS(how) != 0)
        return fail(e, E_CHILD, "child process ended with exit code %d", WEXITSTATUS(how));
    return OK;
}

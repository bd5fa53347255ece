/* SPDX-License-Identifier: MIT
 *
 * Starting measuring children and talking to them. */
#include "child.h"

#include "harness/cli/exit_code.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- processes ---------------------------------------------------------------------------- */

/* In the new process: die with the parent, and leave Ctrl-C to it. */
static void become_child(pid_t parent)
{
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_SOME_FAILED);
}

/* Move `keep` to descriptors 3, 4, ... without stepping on one that is still to be moved. */
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

enum status child_exec(const char *program, char *const *argv, char *const *environment,
                       const int *keep, int n_keep, pid_t *pid, struct err *e)
{
    const pid_t parent = getpid();

    *pid = fork();
    if (*pid < 0)
        return fail(e, E_CHILD, "cannot start a child process: %s", strerror(errno));
    if (*pid == 0) {
        become_child(parent);
        arrange(keep, n_keep);
        execvpe(program ? program : "/proc/self/exe", argv, environment);
        _exit(EXIT_SOME_FAILED);
    }
    return OK;
}

enum status child_reap(pid_t pid, struct err *e)
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

/* ---- one cell ----------------------------------------------------------------------------- */

/* The protocol broke: the reason is how the process died, if it did. */
static enum status broken(struct child *c, enum status st, struct err *e)
{
    struct err death;

    c->failed = true;
    if (st != E_CHILD || c->pid <= 0)
        return st;
    kill(c->pid, SIGCONT);
    if (strcmp(e->msg, "ended") != 0) { /* alive but silent or confused */
        kill(c->pid, SIGKILL);
        child_reap(c->pid, &death);
    } else if (child_reap(c->pid, &death) != OK) {
        *e = death;
    }
    c->pid = 0;
    return E_CHILD;
}

static enum status expect_report(struct child *c, struct err *e)
{
    const enum status st = protocol_read_report(&c->protocol, &c->report, e);

    return st == OK ? OK : broken(c, st, e);
}

static void serve_and_exit(const struct bench_case *bcase, int fd, enum role role, int reference)
{
    struct protocol t = {.fd = fd};

    _exit(worker_loop(&t, bcase, role, reference));
}

/* "bench cell 3 4 ROLE", or the words of setup->launch in the place of "bench". */
static enum status exec_case(struct child *c, const struct child_setup *setup, enum role role,
                             const int keep[2], struct err *e)
{
    char program[] = "bench", command[] = "cell", protocol[] = "3", reference[] = "4", role_word[8];
    char *argv[CHILD_WORDS + 6];
    int n = 0;

    for (; setup->launch && setup->launch[n]; n++) {
        CHECK(n < CHILD_WORDS);
        argv[n] = (char *)setup->launch[n]; /* execve's signature is older than const */
    }
    if (n == 0)
        argv[n++] = program;
    snprintf(role_word, sizeof(role_word), "%d", (int)role);
    argv[n++] = command;
    argv[n++] = protocol;
    argv[n++] = reference;
    argv[n++] = role_word;
    argv[n] = NULL;
    return child_exec(setup->launch ? setup->launch[0] : NULL, argv, setup->environment, keep, 2,
                      &c->pid, e);
}

static enum status start(struct child *c, const struct child_setup *setup, enum role role,
                         int reference, struct err *e)
{
    int ends[2];
    enum status st = OK;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return fail(e, E_CHILD, "no socket for a child process: %s", strerror(errno));
    if (setup->isolate == ISOLATE_EXEC) {
        st = exec_case(c, setup, role, (int[]){ends[1], reference}, e);
    } else {
        const pid_t parent = getpid();
        c->pid = fork();
        if (c->pid == 0) {
            become_child(parent);
            close(ends[0]);
            serve_and_exit(c->bcase, ends[1], role, reference);
        }
        if (c->pid < 0)
            st = fail(e, E_CHILD, "cannot start a child process: %s", strerror(errno));
    }
    close(ends[1]);
    c->protocol = (struct protocol){.fd = ends[0], .patience_s = setup->patience_s};
    if (!c->bcase) /* a block is waited for, a text is not */
        c->protocol.stop = setup->stop;
    if (st != OK)
        c->pid = 0;
    return st;
}

/* Start, and give the first order. */
static enum status begin(struct child *c, const struct child_setup *setup, enum role role,
                         int reference, const char *order, const char *line, struct err *e)
{
    char hello[TALK_LINE];
    enum status st = start(c, setup, role, reference, e);

    if (st == OK)
        st = protocol_read(&c->protocol, hello, e);
    if (st == OK && strcmp(hello, TALK_HELLO) != 0)
        st = fail(e, E_CHILD, "child process said \"%.40s\" for a greeting", hello);
    if (st == OK)
        st = protocol_write(&c->protocol, e, "%s %s", order, line);
    return st == OK ? expect_report(c, e) : broken(c, st, e);
}

enum status child_open(struct child *c, const struct bench_case *bcase,
                       const struct child_setup *setup, enum role role, int reference,
                       struct err *e)
{
    *c = (struct child){.bcase = bcase, .protocol = {.fd = -1}};
    if (setup->isolate != ISOLATE_NONE)
        return begin(c, setup, role, reference, "open", bcase->repro, e);
    c->worker = malloc(sizeof(*c->worker));
    if (!c->worker)
        return fail(e, E_NOMEM, "no memory for a cell");
    const enum status st = worker_open(c->worker, bcase, role, reference, e);
    c->report = c->worker->report;
    return st;
}

enum status child_score(struct child *c, const char *line, const struct child_setup *setup,
                        struct err *e)
{
    *c = (struct child){.protocol = {.fd = -1}};
    if (setup->isolate != ISOLATE_NONE)
        return begin(c, setup, ROLE_NONE, -1, "score", line, e);
    struct options opt = {0};
    enum status st = options_parse_line(&opt, line, e);
    if (st == OK)
        st = worker_score(&c->report, &opt, e);
    options_free(&opt);
    return st;
}

enum status child_place(struct child *c, struct err *e)
{
    if (c->worker) {
        const enum status st = worker_place(c->worker, e);
        c->report = c->worker->report;
        return st;
    }
    const enum status st = protocol_write(&c->protocol, e, "place");
    return st == OK ? expect_report(c, e) : broken(c, st, e);
}

enum status child_block(void *ctx, uint32_t calls, bool prime, struct sample *out, struct err *e)
{
    struct child *c = ctx;
    char line[TALK_LINE];

    if (c->worker)
        return worker_block(c->worker, calls, prime, out, e);
    *out = (struct sample){.calls = calls};
    enum status st = protocol_write(&c->protocol, e, "block %u %d", calls, prime);
    if (st == OK)
        st = protocol_read(&c->protocol, line, e);
    if (st == OK)
        st = protocol_failure(line, e);
    if (st == OK && sscanf(line, "sample %lf %lf %u", &out->wall_ns, &out->cpu_ns,
                           &out->involuntary_switches) != 3)
        st = fail(e, E_CHILD, "child process answered \"%.40s\"", line);
    return st == OK ? OK : broken(c, st, e);
}

void child_close(struct child *c)
{
    struct err ignored;

    if (c->worker) {
        worker_close(c->worker);
        c->report = c->worker->report;
        free(c->worker);
        c->worker = NULL;
    }
    if (c->pid > 0) {
        if (!c->failed && protocol_write(&c->protocol, &ignored, "close") == OK)
            protocol_read_report(&c->protocol, &c->report, &ignored);
        close(c->protocol.fd);
        c->protocol.fd = -1;
        if (c->failed)
            kill(c->pid, SIGKILL);
        child_reap(c->pid, &ignored);
        c->pid = 0;
    }
    if (c->protocol.fd >= 0) {
        close(c->protocol.fd);
        c->protocol.fd = -1;
    }
}

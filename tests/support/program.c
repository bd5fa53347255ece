/* SPDX-License-Identifier: MIT
 *
 * See program.h. */
#include "program.h"
#include "tmp_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

/* A program that takes longer hangs, and is killed by SIGALRM. Most tests have less time, and end it
 * first: on a busy machine that one limit decides. */
enum { PATIENCE_S = 600 };

extern char **environ;

/* ---- starting ----------------------------------------------------------------------------- */

void forget_settings(void)
{
    for (char **v = environ; *v;) {
        const char *const name = kept_text("%.*s", (int)strcspn(*v, "="), *v);
        if (strncmp(name, "BENCH_", 6) == 0 || strcmp(name, "NO_COLOR") == 0 ||
            strcmp(name, "CI") == 0 || strcmp(name, "TERM") == 0 || strcmp(name, "COLUMNS") == 0)
            unsetenv(name); /* moves the next one here */
        else
            v++;
    }
}

static void become_shell(const char *line, const struct program *p)
{
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(PATIENCE_S);
    setpgid(0, 0);
    forget_settings();
    setenv("BENCH_CKPT", "none", 1); /* the shipped models take seconds to score */
    if (setenv("SRC", getcwd(NULL, 0), 1) == 0 && (!*folder || chdir(folder) == 0) &&
        dup2(nothing, 0) == 0 && dup2(p->out, 1) == 1 && dup2(p->err, 2) == 2)
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    _exit(126);
}

struct program start_shell(const char *line)
{
    struct program p = {.out = memfd_create("stdout", MFD_CLOEXEC),
                        .err = memfd_create("stderr", MFD_CLOEXEC)};

    cr_assert_not_null(getenv("BENCH"), "BENCH must name the program under test");
    cr_assert(p.out >= 0 && p.err >= 0);
    p.pid = fork();
    cr_assert(p.pid >= 0);
    if (p.pid == 0)
        become_shell(line, &p);
    setpgid(p.pid, p.pid);
    return p;
}

static struct bytes all_of(int fd)
{
    const off_t n = lseek(fd, 0, SEEK_END);
    struct bytes b = {.data = calloc((size_t)n + 1, 1), .n = (size_t)n};

    cr_assert(b.data && pread(fd, b.data, b.n, 0) == n);
    return b;
}

struct ran finish_bench(struct program *p)
{
    struct ran r;
    int how = 0;

    while (waitpid(p->pid, &how, 0) < 0)
        cr_assert_eq(errno, EINTR);
    r.code = WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
    r.out = all_of(p->out);
    r.err = all_of(p->err);
    kept(r.out.data), kept(r.err.data);
    close(p->out);
    close(p->err);
    return r;
}

struct ran ran_of(const char *line)
{
    struct program p = start_shell(line);

    return finish_bench(&p);
}

const char *bench_line(const char *words) { return kept_text("exec \"$BENCH\" %s", words); }

/* ---- watching ----------------------------------------------------------------------------- */

bool wait_for_text(const struct program *p, const char *text)
{
    enum { STEP_MS = 2 };
    bool ended = false;

    for (int ms = 0; ms < PATIENCE_S * 1000; ms += STEP_MS) {
        struct bytes b = all_of(p->err);
        const bool found = strstr(b.data, text) != NULL;
        free(b.data);
        if (found || ended)
            return found;
        siginfo_t info = {0};
        waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT);
        ended = info.si_pid == p->pid; /* look once more at the last output */
        nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000L}, NULL);
    }
    return false;
}

/* State (a letter) and parent of a process, as in /proc; false if there is none. */
static bool look_at(pid_t pid, char *state, int *parent)
{
    char path[64], text[512] = "";

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    const size_t n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    text[n] = '\0';
    const char *name_end = strrchr(text, ')'); /* names may have anything in them */
    return name_end && sscanf(name_end, ") %c %d", state, parent) == 2;
}

int children_of(pid_t pid, pid_t *out, int max)
{
    DIR *proc = opendir("/proc");
    int n = 0;

    cr_assert_not_null(proc);
    for (const struct dirent *d; (d = readdir(proc)) && n < max;) {
        const pid_t candidate = (pid_t)atoi(d->d_name);
        char state;
        int parent;
        if (candidate > 0 && look_at(candidate, &state, &parent) && parent == pid)
            out[n++] = candidate;
    }
    closedir(proc);
    return n;
}

bool has_ended(pid_t pid)
{
    char state;
    int parent;

    /* An orphan may have no parent to wait for it. */
    return !look_at(pid, &state, &parent) || state == 'Z';
}

/* ---- expecting ---------------------------------------------------------------------------- */

void expect_exit(const struct ran *r, int code)
{
    cr_assert_eq(r->code, code, "exit code %d instead of %d, stderr:\n%.2000s", r->code, code,
                 r->err.data);
}

void expect_said(const struct ran *r, const char *text)
{
    cr_assert(strstr(r->err.data, text), "stderr lacks \"%s\":\n%.2000s", text, r->err.data);
}

struct ran line_exits(int code, const char *said, const char *line)
{
    const struct ran r = ran_of(line);

    cr_assert_eq(r.code, code, "%.300s\nexit code %d instead of %d, stderr:\n%.2000s", line, r.code,
                 code, r.err.data);
    if (said)
        expect_said(&r, said);
    return r;
}

void need_programs(const char *names)
{
    if (run_shell("for p in %s; do command -v $p || exit; done", names).code != 0)
        cr_skip_test("of %s one is not installed", names);
}

struct rows must_read_table(const char *path, enum table_id id)
{
    struct rows rows;
    const enum status st = table_read(&rows, &tables[id], path, &failure);
    cr_assert_eq(st, OK, "%s", failure.msg);
    kept(rows.row);
    return rows;
}

struct rows must_read(const char *run, enum table_id id)
{
    const char *const path = kept_text("%s/%s/%s", folder, run, tables[id].file);
    return must_read_table(path, id);
}

int count_status(const struct rows *latency, const char *status)
{
    const struct latency_row *row = latency->row;
    int n = 0;

    for (size_t i = 0; i < latency->n; i++)
        n += strcmp(row[i].status, status) == 0;
    return n;
}

/* SPDX-License-Identifier: MIT
 *
 * Running a measuring child under callgrind. */
#include "callgrind.h"

#include "harness/machine/env.h"

enum { CALLS = 2 }; /* besides the one of the binding */

static const char VALGRIND[] = "valgrind";

enum status count_ready(struct err *e)
{
    const char *path = getenv("PATH");
    char *copy = need_text("%s", path ? path : ""), *rest = NULL;
    bool found = false;

    for (char *dir = strtok_r(copy, ":", &rest); dir && !found; dir = strtok_r(NULL, ":", &rest)) {
        char file[4096];
        const int n = snprintf(file, sizeof(file), "%s/%s", dir, VALGRIND);
        found = n < (int)sizeof(file) && access(file, X_OK) == 0;
    }
    free(copy);
    return found ? OK
                 : fail(e, E_UNSUPPORTED,
                        "--instructions needs valgrind  -> install valgrind, or leave it out");
}

bool callgrind_applies(const struct bench_case *c)
{
    static const char *const counted[] = {"ref", "avx2"};

    for (size_t i = 0; i < ARRAY_LEN(counted); i++)
        if (strcmp(c->backend->name, counted[i]) == 0)
            return c->threads == 1;
    return false;
}

/* callgrind's last line with "totals: N". */
static enum status read_totals(double *n, const char *path, struct err *e)
{
    char line[256];
    FILE *f = fopen(path, "r");

    *n = -1;
    if (!f)
        return fail(e, E_IO, "cannot read %s: %s  -> install valgrind again", path,
                    strerror(errno));
    while (fgets(line, sizeof(line), f))
        if (sscanf(line, "totals: %lf", n) == 1 || sscanf(line, "summary: %lf", n) == 1)
            continue;
    fclose(f);
    return *n > 0 ? OK : fail(e, E_CHILD, "callgrind counted nothing");
}

static enum status run_under(const struct bench_case *c, const struct child_setup *setup,
                             struct child *child, struct err *e)
{
    struct sample x;

    TRY(child_open(child, c, setup, ROLE_NONE, -1, e));
    TRY(child_place(child, e));
    return child_block(child, CALLS, false, &x, e);
}

enum status callgrind_count(double *n, const struct bench_case *c, const char *program,
                            const struct child_setup *shared, struct err *e)
{
    char path[] = "/tmp/bench-callgrind-XXXXXX", out[64];
    const int fd = mkstemp(path);

    if (fd < 0)
        return fail(e, E_IO, "cannot create %s: %s  -> make room in /tmp", path, strerror(errno));
    close(fd);
    snprintf(out, sizeof(out), "--callgrind-out-file=%s", path);
    const char *const words[] = {VALGRIND,
                                 "--tool=callgrind",
                                 "--quiet",
                                 "--log-file=/dev/null",
                                 "--toggle-collect=job_run",
                                 out,
                                 program,
                                 NULL};
    struct child_setup setup = *shared;
    struct child child;
    setup.launch = words;
    /* hwloc reads from the kernel: otherwise it would warn that it cannot query the CPU itself. */
    setup.environment = env_with(shared->environment, need_text("%s", "HWLOC_COMPONENTS=-x86"));
    enum status st = run_under(c, &setup, &child, e);
    child_close(&child);
    env_free(setup.environment);
    if (st == OK)
        st = read_totals(n, path, e);
    unlink(path);
    return st;
}

/* SPDX-License-Identifier: MIT
 *
 * A gnuplot that fails, hangs, is confused by the user's settings, or is given hostile texts: the
 * rest is written, nothing is left behind. */
#include "tests/support/program.h"
#include "tests/support/run_folder.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

TestSuite(gnuplot, .init = folder_make, .fini = folder_remove, .timeout = 100);

static void make_run(const char *name, const char *cpu)
{
    static const struct made_case cases[] = {
        {"first", "one", "1111", 128, 1000},
        {"first", "one", "2222", 256, 4000},
        {"first", "two", "3333", 128, 1500},
        {"first", "two", "4444", 256, 6000},
    };
    struct rundir r;
    char path[FILE_PATH];

    made_open(&r, "aaaa");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        made_row(&r, &cases[i], "host", "ok", "", 100);
    made_close(&r, "host", cpu);
    folder_path(path, name);
    cr_assert_eq(rename(r.path, path), 0);
}

static char *must_load(const char *name)
{
    char path[FILE_PATH];
    struct bytes b;
    struct err e;

    folder_path(path, name);
    cr_assert_eq(file_read(&b, path, &e), OK, "%s", e.msg);
    return b.data;
}

/* A gnuplot of our own comes first in PATH. */
static void make_gnuplot(const char *script)
{
    char path[FILE_PATH], all[2 * FILE_PATH];

    folder_path(path, "bin");
    cr_assert_eq(mkdir(path, 0700), 0);
    snprintf(all, sizeof(all), "%s:%s", path, getenv("PATH"));
    cr_assert_eq(setenv("PATH", all, 1), 0);
    folder_path(path, "bin/gnuplot");
    FILE *const f = fopen(path, "w");
    cr_assert_not_null(f);
    fprintf(f, "#!/bin/sh\n%s\n", script);
    cr_assert_eq(fclose(f), 0);
    cr_assert_eq(chmod(path, 0700), 0);
}

static void need_gnuplot(void)
{
    struct ran r = run_shell(folder, "command -v gnuplot");
    const bool absent = r.code != 0;

    ran_free(&r);
    if (absent)
        cr_skip_test("gnuplot is not installed");
}

/* Of a desktop's profile, and of one whose terminal there is. */
Test(gnuplot, not_as_the_user_set_it)
{
    static const char *const terms[] = {"x11", "qt", "wxt", "nosuch", "dumb", ""};

    need_gnuplot();
    make_run("run", "CPU");
    for (size_t i = 0; i < ARRAY_LEN(terms); i++) {
        cr_assert_eq(setenv("GNUTERM", terms[i], 1), 0);
        struct ran r = run_bench(folder, "plot run --figure latency-seq");
        expect_exit(&r, 0);
        cr_expect_str_eq(r.out.data, "run/plots/latency-seq.svg\n", "%s", terms[i]);
        ran_free(&r);
    }
}

/* The tables are of use without figures, whatever it is that draws none. */
Test(gnuplot, a_failing_one_costs_the_figures_only)
{
    static const char *const scripts[] = {"echo no luck >&2; exit 1", "exit 0", "kill -SEGV $$",
                                          "exec nosuch"};

    make_run("run", "CPU");
    make_gnuplot(scripts[0]);
    for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
        char path[FILE_PATH];
        folder_path(path, "bin/gnuplot");
        FILE *const f = fopen(path, "w");
        cr_assert_not_null(f);
        fprintf(f, "#!/bin/sh\n%s\n", scripts[i]);
        cr_assert_eq(fclose(f), 0);
        bench_exits(folder, 0, "missing: ", "report run -o page.html --force");
        char *const page = must_load("page.html");
        cr_expect(strstr(page, "<li>figure backends: "), "%s", scripts[i]);
        cr_expect(strstr(page, "-latency.csv\" href"), "%s", scripts[i]);
        free(page);
        bench_exits(folder, 4, NULL, "report run -o page.html --force --strict");
    }
}

/* A job's end, systemd and timeout send the signal to the program alone. */
Test(gnuplot, a_hanging_one_ends_with_the_program)
{
    static const char *const lines[] = {"plot run --figure latency-seq", "report run -o page.html"};
    char path[FILE_PATH];

    make_run("run", "CPU");
    folder_path(path, "tmp");
    cr_assert_eq(mkdir(path, 0700), 0);
    cr_assert_eq(setenv("TMPDIR", path, 1), 0);
    make_gnuplot("sleep 987 & echo $! >child; wait");
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct program p = start_bench(folder, "%s", lines[i]);
        char *child = NULL;
        folder_path(path, "child");
        for (int ms = 0; ms < 40000 && !(child && strchr(child, '\n')); ms += 2) {
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
            free(child);
            child = access(path, F_OK) == 0 ? must_load("child") : NULL;
        }
        cr_assert(child && strchr(child, '\n'), "gnuplot was not started");
        cr_assert_eq(kill(p.pid, SIGTERM), 0);
        struct ran r = finish_bench(&p);
        cr_expect_eq(r.code, 143, "%d: %s", r.code, r.err.data);
        for (int ms = 0; ms < 5000 && !has_ended(atoi(child)); ms += 2)
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        cr_expect(has_ended(atoi(child)), "its child is left");
        folder_path(path, "tmp");
        cr_expect_eq(rmdir(path), 0, "a folder is left in it");
        cr_assert_eq(mkdir(path, 0700), 0);
        folder_path(path, "child");
        cr_assert_eq(unlink(path), 0);
        free(child);
        ran_free(&r);
    }
}

/* XML has neither controls nor bytes that are not UTF-8. */
Test(gnuplot, captions_are_characters)
{
    static const char bad[] = {'X',        0x1b,       1,          0x7f, (char)0xff,
                               (char)0xef, (char)0xbf, (char)0xbf, 'X'};
    struct bytes env;
    char path[FILE_PATH];
    struct err e;

    need_gnuplot();
    make_run("run", "X-1-2-3-X");
    folder_path(path, "run/env.csv");
    cr_assert_eq(file_read(&env, path, &e), OK, "%s", e.msg);
    char *const at = strstr(env.data, "X-1-2-3-X");
    cr_assert_not_null(at);
    for (size_t i = 0; i < sizeof(bad); i++)
        at[i] = bad[i];
    cr_assert_eq(file_replace(path, env.data, env.n, &e), OK, "%s", e.msg);
    free(env.data);
    bench_exits(folder, 0, NULL, "plot run --figure latency-seq");
    char *const svg = must_load("run/plots/latency-seq.svg");
    cr_expect(strstr(svg, ">X\\x1b\\x01\\x7f\\xff\\xef\\xbf\\xbfX<"), "the caption");
    for (const unsigned char *c = (const unsigned char *)svg; *c; c++)
        cr_assert(*c >= ' ' || *c == '\n' || *c == '\t', "byte %d", *c);
    free(svg);
}

/* Each of several runs has a heading above its rankings. */
Test(gnuplot, headings_are_lines)
{
    make_run("run", "CPU");
    make_run("other", "CPU");
    struct ran r = run_bench(folder, "report run other -o page.html --figure latency-seq");
    expect_exit(&r, 0);
    cr_expect(strstr(r.err.data, "\nrun\n") && strstr(r.err.data, "\n\nother\n"), "%s", r.err.data);
    cr_expect_not(strstr(r.err.data, "\\n"), "%s", r.err.data);
    ran_free(&r);
}

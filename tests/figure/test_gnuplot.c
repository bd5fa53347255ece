/* SPDX-License-Identifier: MIT
 *
 * A gnuplot that fails, hangs, is confused by the user's settings, or is given hostile texts: the
 * rest is written, nothing is left behind. */
#include "tests/support/program.h"
#include "tests/support/run_folder.h"

#include <signal.h>

TestSuite(gnuplot, .init = folder_make, .fini = folder_remove, .timeout = 100);

static void make_run(const char *name, const char *cpu)
{
    static const struct made_case cases[] = {
        {"first", "one", "1111", 128, 1000},
        {"first", "one", "2222", 256, 4000},
        {"first", "two", "3333", 128, 1500},
        {"first", "two", "4444", 256, 6000},
    };

    made_cases(name, cpu, cases, ARRAY_LEN(cases));
}

/* A gnuplot of our own comes first in PATH. */
static void make_gnuplot(const char *script)
{
    cr_assert_eq(setenv("PATH", kept_text("%s/bin:%s", folder, getenv("PATH")), 1), 0);
    const char *const all = kept_text("#!/bin/sh\n%s\n", script);
    if (!folder_has("bin"))
        cr_assert_eq(mkdir(in_folder("bin"), 0700), 0);
    folder_put_text("bin/gnuplot", all);
    cr_assert_eq(chmod(in_folder("bin/gnuplot"), 0700), 0);
}

/* Of a desktop's profile, and of one whose terminal there is. */
Test(gnuplot, not_as_the_user_set_it)
{
    need_programs("gnuplot");
    make_run("run", "CPU");
    EACH_TEXT (term, "x11", "qt", "wxt", "nosuch", "dumb", "") {
        cr_assert_eq(setenv("GNUTERM", term, 1), 0);
        struct ran r = must_bench("plot run --figure latency-seq");
        cr_expect_str_eq(r.out.data, "run/plots/latency-seq.svg\n", "%s", term);
    }
}

/* The tables are of use without figures, whatever it is that draws none. */
Test(gnuplot, a_failing_one_costs_the_figures_only)
{
    make_run("run", "CPU");
    EACH_TEXT (script, "echo no luck >&2; exit 1", "exit 0", "kill -SEGV $$", "exec nosuch") {
        make_gnuplot(script);
        bench_exits(0, "missing: ", "report run -o page.html --force");
        char *const page = folder_read("page.html").data;
        cr_expect(strstr(page, "<li>figure backends: "), "%s", script);
        cr_expect(strstr(page, "-latency.csv\" href"), "%s", script);
        bench_exits(4, NULL, "report run -o page.html --force --strict");
    }
}

/* A job's end, systemd and timeout send the signal to the program alone. */
Test(gnuplot, a_hanging_one_ends_with_the_program)
{
    make_run("run", "CPU");
    cr_assert_eq(mkdir(in_folder("tmp"), 0700), 0);
    cr_assert_eq(setenv("TMPDIR", in_folder("tmp"), 1), 0);
    make_gnuplot("sleep 987 & echo $! >child; wait");
    EACH_TEXT (line, "plot run --figure latency-seq", "report run -o page.html") {
        struct program p = start_bench("%s", line);
        char *child = NULL;
        for (int ms = 0; ms < 40000 && !(child && strchr(child, '\n')); ms += 2) {
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
            child = folder_has("child") ? folder_read("child").data : NULL;
        }
        cr_assert(child && strchr(child, '\n'), "gnuplot was not started");
        cr_assert_eq(kill(p.pid, SIGTERM), 0);
        struct ran r = finish_bench(&p);
        cr_expect_eq(r.code, 143, "%d: %s", r.code, r.err.data);
        for (int ms = 0; ms < 5000 && !has_ended(atoi(child)); ms += 2)
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        cr_expect(has_ended(atoi(child)), "its child is left");
        cr_expect_eq(rmdir(in_folder("tmp")), 0, "a folder is left in it");
        cr_assert_eq(mkdir(in_folder("tmp"), 0700), 0);
        cr_assert_eq(unlink(in_folder("child")), 0);
    }
}

/* XML has neither controls nor bytes that are not UTF-8. */
Test(gnuplot, captions_are_characters)
{
    static const char bad[] = {'X',        0x1b,       1,          0x7f, (char)0xff,
                               (char)0xef, (char)0xbf, (char)0xbf, 'X'};

    need_programs("gnuplot");
    make_run("run", "X-1-2-3-X");
    const struct bytes env = folder_read("run/env.csv");
    char *const at = strstr(env.data, "X-1-2-3-X");
    cr_assert_not_null(at);
    memcpy(at, bad, sizeof(bad));
    folder_put("run/env.csv", env.data, env.n);
    must_bench("plot run --figure latency-seq");
    char *const svg = folder_read("run/plots/latency-seq.svg").data;
    cr_expect(strstr(svg, ">X\\x1b\\x01\\x7f\\xff\\xef\\xbf\\xbfX<"), "the caption");
    for (const unsigned char *c = (const unsigned char *)svg; *c; c++)
        cr_assert(*c >= ' ' || *c == '\n' || *c == '\t', "byte %d", *c);
}

/* Each of several runs has a heading above its rankings. */
Test(gnuplot, headings_are_lines)
{
    make_run("run", "CPU");
    make_run("other", "CPU");
    struct ran r = must_bench("report run other -o page.html --figure latency-seq");
    HAS(r.err.data, "\nrun\n", "\n\nother\n");
    cr_expect_not(strstr(r.err.data, "\\n"), "%s", r.err.data);
}

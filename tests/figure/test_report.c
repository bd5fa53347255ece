/* SPDX-License-Identifier: MIT
 *
 * The report: every row is on the page, whatever comes from a table is escaped, the tables can be
 * taken away, nothing is fetched, and what is missing is said. How a browser likes it is tested in
 * tests/browser. */
#include "tests/support/program.h"
#include "tests/support/run_folder.h"

#include <string.h>

TestSuite(report, .init = folder_make, .fini = folder_remove, .timeout = 100);

#define HOSTILE "<script>alert('&\"x\"')</script>"

static const struct made_case cases[] = {
    {"first", "one", "1111", 128, 1000},
    {"first", "two", "2222", 128, 2000},
    {HOSTILE, "one", "3333", 128, 3000},
    {HOSTILE, "two", "4444", 256, 5000},
};

static void make_run(void)
{
    struct rundir r;
    char path[FILE_PATH];

    made_open(&r, "aaaa");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        made_row(&r, &cases[i], "host", i == 2 ? "skipped" : "ok", i == 2 ? HOSTILE : "", 100);
    made_perplexity(&r, &cases[0], "weights", 1.25);
    made_close(&r, "host", HOSTILE);
    folder_path(path, "run");
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

static int count(const char *text, const char *what)
{
    int n = 0;

    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

Test(report, has_every_row_and_every_table)
{
    make_run();
    struct ran r = run_bench(folder, "report run -o page.html --figure latency-seq");
    expect_exit(&r, 0);
    cr_expect_str_eq(r.out.data, "page.html\n");
    ran_free(&r);
    char *const page = must_load("page.html");
    const char *const body = strstr(page, "<tbody>");
    cr_assert(body);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char cell[64];
        snprintf(cell, sizeof(cell), "<td>%s</td>", cases[i].id);
        cr_expect_geq(count(body, cell), 1, "%s is not on the page", cell);
        snprintf(cell, sizeof(cell), "data-v=\"%.0f\">", cases[i].ns);
        cr_expect_eq(count(body, cell), 1, "%s is not on the page", cell);
    }
    cr_expect(strstr(page, "3 of 4 rows measured"));
    cr_expect(strstr(page, "1 skipped"));
    cr_expect_eq(count(page, "<tr>"), 1 + 2 + 3 + 4 + 4 + 1,
                 "heads, the matrix, and the rows of three tables");
    static const char *const files[] = {"latency.csv", "memory.csv", "perplexity.csv", "env.csv"};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        char link[64];
        snprintf(link, sizeof(link), "-%s\" href=\"data:text/csv", files[i]);
        cr_expect_eq(count(page, link), 1, "%s", files[i]);
    }
    free(page);
}

/* 2 ms against 1 ms: the geometric mean over one case. */
Test(report, matrix_is_relative_to_the_fastest)
{
    make_run();
    struct ran r = run_bench(folder, "report run -o page.html --figure training");
    expect_exit(&r, 0);
    ran_free(&r);
    char *const page = must_load("page.html");
    const char *const matrix = strstr(page, "class=\"matrix\"");
    cr_assert(matrix);
    cr_expect(strstr(matrix, "<td class=\"n best\">1.00x <small>(1)</small></td><td "
                             "class=\"n\">2.00x <small>(1)</small></td>"));
    free(page);
}

/* Two cases that only one backend has, and is the fastest of, do not help it. */
Test(report, fastest_is_of_common_cases)
{
    static const struct made_case mixed[] = {
        {"first", "one", "1", 128, 1000}, {"first", "two", "2", 128, 1600},
        {"first", "one", "3", 256, 1500}, {"first", "two", "4", 256, 1000},
        {"first", "two", "5", 512, 1000}, {"first", "two", "6", 1024, 1000},
    };
    struct rundir run;
    char line[2 * FILE_PATH];

    made_open(&run, "aaaa");
    for (size_t i = 0; i < ARRAY_LEN(mixed); i++)
        made_row(&run, &mixed[i], "host", "ok", "", 100);
    made_close(&run, "host", "cpu");
    snprintf(line, sizeof(line), "$BENCH report '%s' -o page.html --figure training", run.path);
    struct ran r = run_shell(folder, line);
    expect_exit(&r, 0);
    ran_free(&r);
    char *const page = must_load("page.html");
    cr_expect(strstr(page, "Fastest backend over all: one</b>, 1.22x"));
    cr_expect(strstr(page, "2 cases that all 2 backends have"));
    free(page);
}

Test(report, escapes_what_it_did_not_write)
{
    make_run();
    struct ran r = run_bench(folder, "report run -o page.html");
    expect_exit(&r, 0);
    ran_free(&r);
    char *const page = must_load("page.html");
    cr_expect_not(strstr(page, "<script>alert"));
    cr_expect_geq(count(page, "&lt;script&gt;alert(&#39;&amp;&quot;x&quot;&#39;)"), 4,
                  "variant, reason, CPU");
    cr_expect_eq(count(page, "<script>"), 1, "the page's own");
    cr_expect_eq(count(page, "</script>"), 1);
    free(page);
}

Test(report, fetches_nothing)
{
    make_run();
    struct ran r = run_bench(folder, "report run -o page.html");
    expect_exit(&r, 0);
    ran_free(&r);
    char *const page = must_load("page.html");
    cr_expect_eq(count(page, "http"),
                 count(page, "http-equiv") + count(page, "=\"http://www.w3.org/"),
                 "names of XML only");
    cr_expect_eq(count(page, " src="), 0);
    cr_expect_eq(count(page, "<link"), 0);
    cr_expect_eq(count(page, "@import"), 0);
    cr_expect(strstr(page, "default-src 'none'"));
    free(page);
}

/* Figures share one page: no two have the same id. */
Test(report, ids_are_unique)
{
    make_run();
    struct ran r = run_bench(folder, "report run run -o page.html");
    expect_exit(&r, 0);
    ran_free(&r);
    r = run_shell(folder,
                  "grep -oE \" id=[\\\"'][^\\\"']*\" page.html | tr -d \"\\\"'\" | sort | uniq -d");
    cr_expect_eq(r.out.n, 0, "twice: %s", r.out.data);
    ran_free(&r);
    r = run_shell(folder, "grep -c '<section>' page.html");
    cr_expect_str_eq(r.out.data, "2\n");
    ran_free(&r);
}

Test(report, says_what_is_missing)
{
    make_run();
    struct ran r = run_shell(folder, "rm run/memory.csv run/env.csv; PATH=nowhere; $BENCH "
                                     "report run -o page.html");
    expect_exit(&r, 0);
    expect_said(&r, "gnuplot is not installed  -> install gnuplot-nox");
    ran_free(&r);
    char *const page = must_load("page.html");
    cr_expect(strstr(page, "env.csv has no row: the machine is not known"));
    cr_expect(strstr(page, "<li>figure memory-parts: memory.csv has no row with bytes</li>"));
    cr_expect(strstr(page, "<li>figure latency-seq: gnuplot is not installed"));
    cr_expect(strstr(page, "<li>latency: skipped, "));
    cr_expect_not(strstr(page, "<svg"));
    free(page);
    r = run_shell(folder, "PATH=nowhere; $BENCH report run -o strict.html --strict");
    expect_exit(&r, 4);
    ran_free(&r);
}

Test(report, refusals)
{
    static const struct {
        const char *line;
        int code;
        const char *said;
    } bad[] = {
        {"report -o page.html", 2, "report needs a run"},
        {"report run", 2, "report needs a file  -> bench report run -o report.html"},
        {"report run -o old.html", 7, "old.html exists  -> --force overwrites it"},
        {"report run -o page.html --figure nosuch", 2, "figure"},
        {"report run -o page.html --format csv", 2, "a report is HTML"},
        {"report nowhere -o page.html", 7, "nowhere"},
        {"report run -o no/such/page.html", 7, "no/such/page.html"},
    };

    make_run();
    struct ran r = run_shell(folder, "echo mine >old.html");
    ran_free(&r);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        r = run_bench(folder, "%s", bad[i].line);
        expect_exit(&r, bad[i].code);
        expect_said(&r, bad[i].said);
        ran_free(&r);
    }
    char *kept = must_load("old.html");
    cr_expect_str_eq(kept, "mine\n");
    free(kept);
    r = run_bench(folder, "report run -o old.html --force --figure training");
    expect_exit(&r, 0);
    ran_free(&r);
}

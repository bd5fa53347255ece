/* SPDX-License-Identifier: MIT
 *
 * The report: every table is in a link of the page, everything from a table is escaped, nothing is
 * fetched, and missing parts are named. The tables that its script draws are tested in
 * tests/browser. */
#include "tests/support/program.h"
#include "tests/support/run_folder.h"
#include "tests/support/words.h"

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
    struct rundir r = made_open("aaaa");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        made_row(&r, &cases[i], "host", i == 2 ? "skipped" : "ok", i == 2 ? HOSTILE : "", 100);
    made_perplexity(&r, &cases[0], "weights", 1.25);
    made_close(&r, "host", HOSTILE);
    cr_assert_eq(rename(r.path, in_folder("run")), 0);
}

/* The address of a table's link, as text that ends at its quote. Free it. */
static char *link_of(const char *page, const char *file)
{
    const char *const begin = kept_text("-%s\" href=\"data:text/csv;charset=utf-8,", file);
    cr_assert_eq(count_in(page, begin), 1, "%s", file);
    const char *const from = strstr(page, begin) + strlen(begin);
    return kept(strndup(from, strcspn(from, "\"")));
}

Test(report, has_every_row_of_every_table)
{
    static const struct {
        const char *file;
        int lines; /* with the header */
    } files[] = {{"latency.csv", 5},
                 {"memory.csv", 5},
                 {"perplexity.csv", 2},
                 {"env.csv", 2},
                 {"ranking.csv", 10}}; /* two variants, two backends, and the cases of each */

    make_run();
    struct ran r = must_bench("report run -o page.html --figure latency-seq");
    cr_expect_str_eq(r.out.data, "page.html\n");
    char *const page = folder_read("page.html").data;
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        char *const link = link_of(page, files[i].file);
        cr_expect_eq(count_in(link, "%0A"), files[i].lines, "%s", files[i].file);
    }
    char *const latency = link_of(page, "latency.csv");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char field[64];
        snprintf(field, sizeof(field), ",%s,", cases[i].id);
        cr_expect_eq(count_in(latency, field), 1, "%s is not on the page", field);
        snprintf(field, sizeof(field), ",%.0f,", cases[i].ns);
        cr_expect_eq(count_in(latency, field), 1, "%s is not on the page", field);
    }
    HAS(page, "<noscript>");
    cr_expect_not(strstr(page, "{{"), "a value that was not filled in");
}

/* In links, in figures, and as the name of a folder. */
Test(report, escapes_what_it_did_not_write)
{
    make_run();
    must_shell(
        "cp -r run '<b>&\"x' && rm '<b>&\"x/env.csv' && $BENCH report run '<b>&\"x' -o page.html");
    char *const page = folder_read("page.html").data;
    cr_expect_not(strstr(page, "<script>alert"));
    cr_expect_geq(count_in(page, "%3Cscript%3Ealert(%27%26%22%22x%22%22%27)"), 4,
                  "variant, reason, CPU");
    cr_expect_eq(count_in(page, "<script>"), 1, "the page's own");
    NUMBERS({count_in(page, "</script>"), 1}, {count_in(page, "<b>&"), 0});
    HAS(page, "data-run=\"&#60;b&#62;&#38;&#34;x\"", "<h2>Run &#60;b&#62;&#38;&#34;x</h2>",
        "download=\"&#60;b&#62;&#38;&#34;x-latency.csv\"");
}

Test(report, fetches_nothing)
{
    make_run();
    must_bench("report run -o page.html");
    char *const page = folder_read("page.html").data;
    cr_expect_eq(count_in(page, "http"),
                 count_in(page, "http-equiv") + count_in(page, "\"http://www.w3.org/"),
                 "names of XML only");
    NUMBERS({count_in(page, " src="), 0}, {count_in(page, "<link"), 0},
            {count_in(page, "@import"), 0});
    HAS(page, "default-src 'none'");
}

/* Figures share one page: no two have the same id. */
Test(report, ids_are_unique)
{
    make_run();
    must_bench("report run run -o page.html");
    struct ran r =
        run_shell("grep -oE \" id=[\\\"'][^\\\"']*\" page.html | tr -d \"\\\"'\" | sort | uniq -d");
    cr_expect_eq(r.out.n, 0, "twice: %s", r.out.data);
    r = run_shell("grep -c '<section ' page.html");
    cr_expect_str_eq(r.out.data, "2\n");
}

Test(report, says_what_is_missing)
{
    make_run();
    shell_exits(0, "gnuplot is not installed  -> install gnuplot-nox",
                "rm run/memory.csv run/env.csv; PATH=nowhere; $BENCH report run -o page.html");
    char *const page = folder_read("page.html").data;
    HAS(page, "<li>figure memory-parts: memory.csv has no row with bytes</li>",
        "<li>figure backends: gnuplot is not installed", "<li>raw samples: ");
    cr_expect_not(strstr(page, "<svg"));
    cr_expect_not(strstr(page, "figure latency-seq"), "the page's script draws it");
    cr_expect_not(strstr(page, "-memory.csv\""), "a link to a table that is not there");
    cr_expect_not(strstr(page, "class=\"command\""));
    shell_exits(4, NULL, "PATH=nowhere; $BENCH report run -o strict.html --strict");
}

/* The link moves with the next run, so what was written is named by the run's own folder. */
Test(report, names_the_folder_that_a_link_points_to)
{
    make_run();
    struct ran r = must_shell("mkdir results && mv run results/mine && ln -s mine results/latest "
                              "&& $BENCH report --figure training");
    cr_expect_str_eq(r.out.data, "results/mine/report.html\n");
    r = must_bench("plot --figure latency-seq --format csv");
    cr_expect_str_eq(r.out.data, "results/mine/plots/latency-seq.csv\n");
}

Test(report, refusals)
{
    static const struct {
        const char *line;
        int code;
        const char *said;
    } bad[] = {
        {"report -o page.html", 7, "results/latest"},
        {"report run -o .", 7, ". is a folder  -> name a file, such as ./report.html"},
        {"report run -o old.html", 7, "old.html exists  -> overwrite it with --force"},
        {"report run -o page.html --figure nosuch", 2, "figure"},
        {"report run -o page.html --format csv", 2, "--format does not apply to report"},
        {"report nowhere -o page.html", 7, "nowhere"},
        {"report run -o no/such/page.html", 7, "no/such/page.html"},
    };

    make_run();
    folder_put_text("old.html", "mine\n");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        bench_exits(bad[i].code, bad[i].said, "%s", bad[i].line);
    cr_expect_str_eq(folder_read("old.html").data, "mine\n");
    must_bench("report run -o old.html --force --figure training");
}

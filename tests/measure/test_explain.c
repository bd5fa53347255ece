/* SPDX-License-Identifier: MIT
 *
 * Rows in words: each reason to doubt a row is named where it holds, and only there. */
#include "harness/measure/explain.h"
#include "harness/table/remarks.h"
#include "tests/support/run_folder.h"

#include <stdlib.h>
#include <string.h>

TestSuite(explain, .init = folder_make, .fini = folder_remove, .timeout = 240);

enum { BLOCKS = 10 };

/* A run of one case whose launches take these times, by 1 % more and less in turns. */
static struct run run_of(const double *ns, int launches)
{
    static const struct made_case made = {"xl", "avx2", "1", 128, 1000};
    struct rundir d;
    struct run run;
    struct err e;

    made_open(&d, "aaaa");
    made_row(&d, &made, "host", "ok", "", 100);
    for (int i = 0; i < launches * BLOCKS; i++)
        made_block(&d, made.id, i, i / BLOCKS, ns[i / BLOCKS] * (i % 2 ? 1.01 : 0.99), 0, 1);
    made_close(&d, "host", "CPU");
    cr_assert_eq(run_read(&run, d.path, &e), OK, "%s", e.msg);
    struct latency_row *const row = run.latency.row;
    row->samples = launches * BLOCKS;
    row->launches = launches;
    row->samples_disturbed = 0;
    row->inner_calls = 10;
    row->drift_pct = 0.1;
    row->clock_ratio = 1;
    row->ci95_low_ns = 0.99 * 1000;
    row->ci95_high_ns = 1.01 * 1000;
    text_put(row->stop_reason, TEXT_SIZE, "ci");
    text_put(row->status_detail, LINE_SIZE, "");
    return run;
}

static void expect_text(const struct run *run, const char *part, bool there)
{
    char *text = NULL;
    size_t n = 0;
    FILE *const f = open_memstream(&text, &n);

    cr_assert_not_null(f);
    explain_row(f, run, run->latency.row);
    fclose(f);
    cr_expect_eq(strstr(text, part) != NULL, there, "\"%s\" in:\n%s", part, text);
    free(text);
}

Test(explain, a_row_without_doubts)
{
    struct run run = run_of((const double[]){1000, 1000, 1000}, 3);

    cr_expect_eq(row_doubts(&run, run.latency.row), 0);
    expect_text(&run, "  launches   3: 1.00 us, 1.00 us, 1.00 us; standard deviation ", true);
    expect_text(&run, "by order statistics of the blocks\n", true);
    expect_text(&run, "  reason ", false);
    run_free(&run);
}

Test(explain, launches_that_decide_the_interval)
{
    struct run run = run_of((const double[]){980, 1000, 1020}, 3);
    struct latency_row *const row = run.latency.row;

    row->ci95_low_ns = 950;
    row->ci95_high_ns = 1050;
    cr_expect_eq(row_doubts(&run, row), DOUBT_LAUNCHES);
    expect_text(&run, "by Student's t over launches, 2 degrees of freedom; blocks alone: [", true);
    expect_text(&run, "  reason     launches: launches differ more", true);
    run_free(&run);
}

Test(explain, each_reason)
{
    struct run run = run_of((const double[]){1000}, 1);
    struct latency_row *const row = run.latency.row;
    const struct {
        const char *stop, *detail;
        double drift;
        unsigned want;
    } rule[] = {
        {"ci", "", 0.1, DOUBT_ONE},
        {"ci", "noisy", 0.1, DOUBT_ONE | DOUBT_PREEMPTED},
        {"time", "", 0.1, DOUBT_ONE | DOUBT_WIDE},
        {"time", "few", 0.1, DOUBT_ONE | DOUBT_FEW},
        {"ci", "clock", 0.1, DOUBT_ONE | DOUBT_CLOCK},
        {"ci", "", -1.1, DOUBT_ONE | DOUBT_DRIFT},
    };

    for (size_t i = 0; i < ARRAY_LEN(rule); i++) {
        text_put(row->stop_reason, TEXT_SIZE, rule[i].stop);
        text_put(row->status_detail, LINE_SIZE, rule[i].detail);
        row->drift_pct = rule[i].drift;
        cr_expect_eq(row_doubts(&run, row), rule[i].want, "rule %zu: %u", i, row_doubts(&run, row));
    }
    row->launches = I64_EMPTY; /* of an older run */
    cr_expect(row_doubts(&run, row) & DOUBT_ONE);
    run_free(&run);
}

Test(explain, a_row_without_a_time)
{
    struct run run = run_of((const double[]){1000}, 1);
    struct latency_row *const row = run.latency.row;

    row->median_ns = NAN;
    text_put(row->status, TEXT_SIZE, "skipped");
    text_put(row->status_detail, LINE_SIZE, "memory");
    expect_text(&run, "  no time    skipped: memory\n", true);
    expect_text(&run, "  median ", false);
    run_free(&run);
}

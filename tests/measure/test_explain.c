/* SPDX-License-Identifier: MIT
 *
 * Rows in words: each reason to doubt a row is named where it holds, and only there. */
#include "harness/measure/explain.h"
#include "tests/support/run_folder.h"

TestSuite(explain, .init = folder_make, .fini = folder_remove, .timeout = 240);

enum { BLOCKS = 10 };

/* A run of one case whose launches take these times, by 1 % more and less in turns. */
static struct run run_of(const double *ns, int launches)
{
    static const struct made_case made = {"xl", "avx2", "1", 128, 1000};
    struct rundir d = made_open("aaaa");
    made_row(&d, &made, "host", "ok", "", 100);
    for (int i = 0; i < launches * BLOCKS; i++)
        made_block(&d, made.id, i, i / BLOCKS, ns[i / BLOCKS] * (i % 2 ? 1.01 : 0.99), 0, 1);
    struct run run = made_read(&d);
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
    char *text = PRINTED(f, explain_row(f, run, run->latency.row));
    cr_expect_eq(strstr(text, part) != NULL, there, "\"%s\" in:\n%s", part, text);
}

Test(explain, a_row_without_doubts)
{
    struct run run = run_of((const double[]){1000, 1000, 1000}, 3);

    cr_expect_eq(row_doubts(&run, run.latency.row), 0);
    expect_text(&run, "  launches   3: 1.00 us, 1.00 us, 1.00 us; standard deviation ", true);
    expect_text(&run, "by order statistics of the blocks\n", true);
    expect_text(&run, "  reason ", false);
}

Test(explain, launches_that_decide_the_interval)
{
    struct run run = run_of((const double[]){980, 1000, 1020}, 3);
    struct latency_row *const row = run.latency.row;

    row->ci95_low_ns = 950;
    row->ci95_high_ns = 1050;
    cr_expect_eq(row_doubts(&run, row), DOUBT_LAUNCHES);
    expect_text(&run, "its own with Student's t; blocks alone: [", true);
    expect_text(&run, "  reason     launches: launches differ more", true);
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
}

/* FLOP, bytes and roofs, by hand: 2 MFLOP and 1 MiB in 1 us. */
static void with_work(struct latency_row *row)
{
    row->flop_count = 2e6;
    row->bytes_moved_min = 1 << 20;
    row->gflop_per_s = 2000;
    row->gbyte_per_s = 1048.576;
    row->peak_flops_pct = 4;
    row->peak_bw_pct = 1;
    text_put(row->bound, TEXT_SIZE, "compute");
}

Test(explain, what_bounds_it)
{
    struct run run = run_of((const double[]){1000}, 1);
    struct latency_row *const row = run.latency.row;

    expect_text(&run, "  work ", false);
    with_work(row);
    expect_text(&run, "  work       2.00 MFLOP and at least 1.0 MiB per call: 1.91 FLOP per byte\n",
                true);
    expect_text(&run,
                "  rate       2 000 GFLOP/s, 4.0 % of the measured peak; 1 050 GB/s, 1.0 % of the "
                "read bandwidth\n",
                true);
    expect_text(
        &run, "  roof       compute is nearer: at that rate 40.0 ns per call, 25.0x as fast", true);
    expect_text(&run, "far from both: neither FLOP nor bytes explain the time  -> ", true);
    row->peak_flops_pct = 80;
    expect_text(&run, "far from both", false);
    expect_text(&run, "near it  -> only fewer FLOP", true);
    text_put(row->bound, TEXT_SIZE, "memory");
    row->peak_bw_pct = 90;
    expect_text(&run, "near it  -> only fewer bytes", true);
    row->peak_bw_pct = NAN;
    expect_text(&run, "  roof       unknown: the run has no undisturbed peaks", true);
}

/* The row says which case it is: FLOP of one layer, products and attention, are counted anew. A layer
 * of D = 16, F = 64, L = M + L = 8: products 2 L (4 D^2 + 2 D F), attention 2 * 2 D L (L + 1) / 2. */
Test(explain, shares_of_its_layers)
{
    const double maps = 2 * 8 * 4 * 16 * 16, pairs = 2 * 16 * 8 * 9, rest = 2 * 8 * 2 * 16 * 64;
    const double all = (maps + pairs + rest) / 100;
    struct run run = run_of((const double[]){1000}, 1);
    struct latency_row *const row = run.latency.row;
    char text[160];

    with_work(row);
    expect_text(&run, "of its layers' FLOP", false);
    text_put(row->repro, LINE_SIZE,
             "--variant vanilla --backend ref --workload layer --seq 8 --mem 0 --d-model 16 "
             "--heads 2 --threads 1");
    snprintf(
        text, sizeof(text),
        "of its layers' FLOP, counted, not timed: pairs of queries and keys %.1f %%, their maps "
        "%.0f %%, the rest %.0f %%\n",
        pairs / all, maps / all, rest / all);
    expect_text(&run, text, true);
}

/* A second backend of the case in the same run; other cases do not count. */
Test(explain, the_best_backend_beside_it)
{
    static const struct made_case made[] = {{"xl", "avx2", "1", 128, 1000},
                                            {"xl", "ref", "2", 128, 4000},
                                            {"xl", "onednn", "3", 64, 10}};
    struct rundir d = made_open("aaaa");
    for (size_t i = 0; i < ARRAY_LEN(made); i++)
        made_row(&d, &made[i], "host", "ok", "", 100);
    struct run run = made_read(&d);
    struct latency_row *const row = run.latency.row;
    expect_text(&run, "  best ", false);
    struct latency_row swap = row[0];
    row[0] = row[1];
    row[1] = swap;
    expect_text(&run, "  best       avx2, 1.00 us: 4.00x as fast; ran ", true);
    row[0].samples_disturbed = 1; /* as rankings do */
    row[0].cpu_time_median_ns = 3000;
    row[1].cpu_time_median_ns = 1500;
    expect_text(&run, "  best       avx2, 1.50 us of CPU time: 2.00x as fast; ran ", true);
    text_put(row[1].status, TEXT_SIZE, "wrong");
    expect_text(&run, "  best ", false);
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
}

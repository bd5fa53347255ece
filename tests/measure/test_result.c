/* SPDX-License-Identifier: MIT
 *
 * The derived columns of a row, from one report and six samples, by hand. */
#include "harness/measure/result.h"
#include "tests/support/command_line.h"
#include "tests/support/compared.h"
#include "tests/support/kernel/simd.h"

/* Two threads on one L2 and one L1 each and two L3. */
static const struct topo_facts caches = {
    .l1d_bytes = 1 << 10, .l2_bytes = 8 << 10, .l3_bytes = 64 << 10, .l3_count = 2};
static const struct peaks peaks = {.threads = 2,
                                   .flops = {[ISA_BASE] = 100e9, [ISA_SIMD] = 400e9},
                                   .l1 = 300e9,
                                   .l2 = 120e9,
                                   .l3 = 60e9,
                                   .dram = 20e9};

/* 2400 flop, 360 bytes and 6 tokens a call. Blocks of two calls of 10 12 99 11 13 30 12 ns; the 99 is
 * disturbed and leaves. */
struct example {
    struct options o;
    struct plan plan;
    struct sample sample[7];
    struct result r;
    struct key_row key;
    struct latency_row row;
};

static struct example x;

static void open_example(void)
{
    static const double wall[] = {10, 12, 99, 11, 13, 30, 12}, cpu[] = {8, 9, 70, 8, 10, 20, 9};

    must_plan(&x.plan, &x.o, "-b ref -w attn -V xl --seq 3 --mem 4 --d-model 16 --heads 2");
    for (int i = 0; i < 7; i++)
        x.sample[i] = (struct sample){.wall_ns = 2 * wall[i],
                                      .cpu_ns = 2 * cpu[i],
                                      .calls = 2,
                                      .involuntary_switches = i == 2 ? 5 : 0,
                                      .disturbed = i == 2};
    x.r = (struct result){.bcase = &x.plan.cases[0],
                          .outcome = {.stop = STOP_TIME, .inner_calls = 2, .samples = 7},
                          .samples = x.sample,
                          .n = 7};
    x.r.report = (struct report){.bind_ns = 7e6,
                                 .flop = 2400,
                                 .bytes = 360,
                                 .tokens = 6,
                                 .max_abs_err = 3e-7,
                                 .max_rel_err = 2e-7,
                                 .nmse = 4e-14,
                                 .isa_used = "avx2"};
    x.key = key_row_empty();
    result_finish(&x.r);
}

TestSuite(result, .init = open_example);

/* Its row beside these peaks, and 36 ns of the reference. */
static const struct latency_row *row_of(const struct peaks *p)
{
    const struct roofline y = {.peaks = p, .caches = &caches, .ref_median_ns = 36};

    result_latency(&x.row, &x.r, &x.key, &y);
    return &x.row;
}

static void expect_is(double got, double want, const char *column)
{
    cr_expect(fabs(got - want) <= 1e-12 * fabs(want), "%s is %.17g, not %.17g", column, got, want);
}
#define IS(column, want) expect_is((double)row->column, want, #column)

Test(result, columns_of_times)
{
    const struct latency_row *const row = row_of(NULL);

    NUMBERS({row->samples, 7}, {row->samples_disturbed, 1}, {row->inner_calls, 2},
            {row->involuntary_switches, 5}, {row->min_ns, 10}, {row->median_ns, 12},
            {row->max_ns, 30});
    IS(mean_ns, 88.0 / 6);
    /* Squares of 10 12 11 13 30 12 add up to 1578. */
    IS(stddev_ns, sqrt((1578 - 88.0 * 88 / 6) / 5));
    IS(mad_ns, 1);       /* of 2 0 1 1 18 0 */
    IS(ci95_low_ns, 10); /* six have their range */
    IS(ci95_high_ns, 30);
    IS(cpu_time_median_ns, 9);            /* of 8 9 8 10 20 9 */
    IS(drift_pct, 100 * (13.0 / 11 - 1)); /* of 10 12 11 and 13 30 12 */
    cr_expect(isnan(row->p90_ns) && isnan(row->p99_ns), "too few samples for them");
    cr_expect_str_eq(row->stop_reason, "time");
}

/* Launches that agree have no narrower interval than those of the run's cases; never a narrower one than their own. */
Test(result, interval_is_as_wide_as_launches_of_the_run_tell)
{
    static const struct launch_noise loud = {.squares = 2, .freedom = 2}, quiet = {1e-9, 2}, none;
    const double half = 4.30265272974946 / sqrt(3);

    x.r.sum.launches = 3;
    result_widen(&x.r, &none);
    result_widen(&x.r, &quiet);
    cr_expect(x.r.sum.ci_low == 10 && x.r.sum.ci_high == 30);
    result_widen(&x.r, &loud);
    expect_is(x.r.sum.ci_low, 12 * exp(-half), "low");
    expect_is(x.r.sum.ci_high, 12 * exp(half), "high");
    x.r.sum.ci_low = x.r.sum.ci_high = NAN;
    result_widen(&x.r, &loud);
    cr_expect(isnan(x.r.sum.ci_low) && isnan(x.r.sum.ci_high), "few samples have none");
}

/* Rates are by the median, 12 ns: not by the mean or the fastest. */
Test(result, columns_of_rates)
{
    const struct latency_row *const row = row_of(NULL);

    NUMBERS({row->flop_count, 2400}, {row->bytes_moved_min, 360}, {row->gflop_per_s, 200},
            {row->gbyte_per_s, 30}, {row->tokens_per_s, 5e8, 5e-4}, {row->ref_median_ns, 36},
            {row->ratio_to_ref, 3}, {row->bind_ns, 7e6}, {row->max_abs_err, 3e-7},
            {row->max_rel_err, 2e-7}, {row->nmse, 4e-14}, {row->nmse_limit, 1e-10},
            {row->err_limit, 2e-5}); /* of the workload */
    cr_expect(isnan(row->peak_flops_pct) && isnan(row->peak_bw_pct) && !row->bound[0],
              "peaks were not measured");
}

/* 200 Gflop/s of 400, 30 GB/s of the level that holds the bytes. */
Test(result, columns_of_the_roofline)
{
    const struct latency_row *const row = row_of(&peaks);

    IS(peak_flops_pct, 50);
    IS(peak_bw_pct, 10);
    cr_expect_str_eq(row->bound, "compute"); /* 6 ns of multiply-adds, 1.2 ns of reading */

    x.r.report.flop = 479; /* 480 take as long as the bytes */
    row_of(&peaks);
    cr_expect_str_eq(row->bound, "memory");
    x.r.report.flop = 481;
    row_of(&peaks);
    cr_expect_str_eq(row->bound, "compute");

    strcpy(x.r.report.isa_used, "base");
    row_of(&peaks);
    IS(peak_flops_pct, 100 * (481 / 12.0) / 100);
    strcpy(x.r.report.isa_used, "avx512"); /* not measured */
    row_of(&peaks);
    cr_expect(isnan(row->peak_flops_pct) && !row->bound[0]);
    IS(peak_bw_pct, 10);
}

/* The level is the first that the bytes fit into: private ones once per thread, L3 all of them. */
Test(result, bandwidth_is_that_of_the_level_that_fits)
{
    static const struct {
        double bytes, gbyte_per_s;
    } levels[] = {
        {2 << 10, 300},       {(2 << 10) + 1, 120}, {16 << 10, 120},
        {(16 << 10) + 1, 60}, {128 << 10, 60},      {(128 << 10) + 1, 20},
    };
    struct peaks without_l2 = peaks;
    const struct latency_row *const row = &x.row;

    for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
        x.r.report.bytes = levels[i].bytes;
        row_of(&peaks);
        IS(peak_bw_pct, 100 * (levels[i].bytes / 12) / levels[i].gbyte_per_s);
    }
    without_l2.l2 = 0;
    x.r.report.bytes = 4 << 10;
    row_of(&without_l2);
    IS(peak_bw_pct, 100 * ((4 << 10) / 12.0) / 60);
}

/* 400 Gflop/s are 4800 flop in 12 ns. Of 8 KiB that are surely read the two L1 hold 2 KiB, which takes 2048 / 300,
 * the rest comes from L2: 6144 / 120, 58.0 ns together. */
Test(result, faster_than_the_machine_is_suspect)
{
    static const struct {
        double flop, bytes, median;
        int busy;
        enum elem elem;
        enum row_status status;
        const char *of;
    } row[] = {
        {4890, 360, 12, 0, ELEM_F32, ROW_OK, ""},
        {4900, 360, 12, 0, ELEM_F32, ROW_SUSPECT, "102 % of the measured peak"},
        {4900, 360, 12, 1, ELEM_F32, ROW_OK, ""},
        {4900, 360, 12, 0, ELEM_BF16, ROW_OK, ""}, /* has instructions of its own */
        {1 << 13, 8 << 10, 57, 0, ELEM_F32, ROW_OK, ""},
        {1 << 13, 8 << 10, 56, 0, ELEM_F32, ROW_SUSPECT, "104 % of the measured read bandwidth"},
        {1 << 12, 8 << 10, 56, 0, ELEM_BF16, ROW_OK, ""}, /* of 8 KiB 4 are read at most */
        {1 << 13, 8 << 10, 56, 0, ELEM_BF16, ROW_SUSPECT, "104 %"},
    };

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct peaks own = peaks;
        open_example();
        const struct roofline y = {.peaks = &own, .caches = &caches, .ref_median_ns = 36};
        own.busy = row[i].busy;
        x.plan.cases[0].config.dtype = row[i].elem;
        x.r.report.flop = row[i].flop;
        x.r.report.bytes = row[i].bytes;
        x.r.sum.median = row[i].median;
        x.r.sum.disturbed = 0;
        result_judge(&x.r, &y);
        cr_expect_eq(x.r.status, row[i].status, "%zu: %s", i, x.r.detail);
        if (row[i].of[0])
            cr_expect(strstr(x.r.detail, row[i].of), "%s", x.r.detail);
    }
    for (int i = 0; i < 2; i++) { /* 199 and 201 % on a busy machine */
        open_example();
        x.r.report = (struct report){.flop = i ? 9648 : 9552, .bytes = 360, .isa_used = "avx2"};
        x.r.sum.median = 12;
        x.r.sum.disturbed = 1;
        result_judge(&x.r, &(struct roofline){.peaks = &peaks, .caches = &caches});
        cr_expect_eq(x.r.status, i ? ROW_SUSPECT : ROW_OK, "%s", x.r.detail);
    }
    open_example();
    result_judge(&x.r, &(struct roofline){.caches = &caches});
    cr_expect_eq(x.r.status, ROW_OK, "peaks were not measured");
}

Test(result, what_was_not_measured_is_empty)
{
    const struct latency_row *const row = &x.row;

    x.r.n = 0; /* placed and checked, no block counted */
    row_of(&peaks);
    IS(flop_count, 2400);
    cr_expect(isnan(row->median_ns) && isnan(row->gflop_per_s) && isnan(row->tokens_per_s));
    cr_expect(isnan(row->ratio_to_ref) && isnan(row->peak_flops_pct) && !row->bound[0]);
    x.r.report.bind_ns = 0; /* not even placed */
    row_of(&peaks);
    cr_expect(isnan(row->flop_count) && isnan(row->bytes_moved_min) && isnan(row->err_limit));
}

Test(result, peaks_of_a_busy_machine_are_no_measure)
{
    struct peaks busy = peaks;

    busy.busy = 1;
    row_of(&busy);
    cr_expect(isnan(x.row.peak_flops_pct) && isnan(x.row.peak_bw_pct) && !x.row.bound[0]);
    cr_expect(x.row.gflop_per_s > 0);
}

Test(result, remarks)
{
    cr_expect_str_eq(x.r.detail, "");
    x.o.check = false;
    x.sample[0].disturbed = true; /* five remain, too few to leave two out */
    result_finish(&x.r);
    cr_expect_eq(x.r.remarks, REMARK_UNCHECKED | REMARK_NOISY);
    x.r.n = 5;
    result_finish(&x.r);
    cr_expect_eq(x.r.remarks, REMARK_UNCHECKED | REMARK_NOISY | REMARK_FEW);
    row_of(NULL);
    cr_expect(isnan(x.row.ci95_low_ns) && isnan(x.row.ci95_high_ns), "five have no interval");
    cr_expect(isnan(x.row.err_limit), "nothing was compared");
}

/* Half of the blocks ran at a lower clock rate than the group's fastest, or all; or the team was of several
 * kinds of cores. */
Test(result, remarks_of_clock_and_cores)
{
    row_of(&peaks);
    cr_expect(isnan(x.row.clock_ratio) && isnan(x.row.energy_j), "unknown");
    cr_expect_eq(x.r.remarks, 0);
    x.r.spin_ns = 100;
    for (int i = 0; i < x.r.n; i++) {
        x.r.samples[i].spin_ns = 101;
        x.r.samples[i].energy_j = 0.5 * x.r.samples[i].calls;
    }
    result_finish(&x.r);
    cr_expect_eq(x.r.remarks, 0, "1 %% is nothing");
    for (int i = 0; i < x.r.n; i++)
        x.r.samples[i].spin_ns = 125;
    x.r.report.mixed_kinds = 1;
    result_finish(&x.r);
    cr_expect_eq(x.r.remarks, REMARK_CLOCK | REMARK_MIXED);
    row_of(&peaks);
    NUMBERS({x.row.clock_ratio, 0.8}, {x.row.energy_j, 0.5});
}

Test(result, columns_of_memory)
{
    struct memory_row memory, *const row = &memory;

    x.r.report.arena_bytes = 5000;
    x.r.report.predicted_bytes = 800;
    x.r.report.cache_bytes = 700;
    x.r.report.rss_before_bytes = 30000;
    x.r.report.rss_peak_bytes = 36000;
    for (int p = 0; p < PART_COUNT; p++)
        x.r.report.part_bytes[p] = 100 + p;
    result_memory(&memory, &x.r, &x.key);
    NUMBERS({row->arena_peak_bytes, 5000}, {row->model_predicted_bytes, 800},
            {row->cache_bytes, 700}, {row->rss_before_bytes, 30000}, {row->rss_peak_bytes, 36000},
            {row->rss_delta_bytes, 6000}, {row->weights_bytes, 100}, {row->activations_bytes, 101},
            {row->memory_state_bytes, 102}, {row->scores_bytes, 103}, {row->rel_pos_bytes, 104},
            {row->gradients_bytes, 105}, {row->optimizer_bytes, 106},
            {row->backend_scratch_bytes, 107});
}

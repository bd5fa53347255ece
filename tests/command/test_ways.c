/* SPDX-License-Identifier: MIT
 *
 * Every way to place, isolate and choose cases; cases that cannot run; rows that are run again. */
#include "tests/support/each.h"
#include "tests/support/kernel/simd.h"
#include "tests/support/sanitized.h"
#include "tests/support/tmp_folder.h"
#include "tests/table/must_rows.h"
#include <sched.h>
#include <time.h>

TestSuite(ways, .init = folder_make, .fini = folder_remove, .timeout = 120);

static struct rows latency_of(const char *run) { return must_read(run, TABLE_LATENCY); }

/* Several cases with several threads in one process: the first does not take the CPUs of the
 * others.
 */
Test(ways, many_cases_in_this_process)
{
    cpu_set_t cpus;

    cr_assert_eq(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
    if (CPU_COUNT(&cpus) < 2)
        cr_skip_test("needs two CPUs");
    must_bench("--variant xl --backend ref," SIMD
               " --workload attn --seq 6,8 --mem 0 --isolate none --threads 2,1 " BRIEF);
    struct rows rows = latency_of("r/latest");
    NUMBERS({rows.n, 8}, {count_status(&rows, "ok"), 8});
}

/* ---- each way to run a case --------------------------------------------------------------- */

struct way {
    char words[64];
    char column[16], value[32]; /* expected in each row */
    bool cpus;                  /* needs two CPUs */
};

static struct way each_way[] = {
    {"--isolate exec", "status", "ok", false},
    {"--isolate fork", "status", "ok", false},
    {"--isolate none", "status", "ok", false},
    {"--cache cold", "cache_mode", "cold", false},
    {"--pin none", "pin", "none", false},
    {"--pin scatter", "pin", "scatter", false},
    {"--pin 0", "cpus", "0", false},
    {"--pin 1,0 --threads 2", "threads_seen", "2", true},
    {"--pin none --threads 3", "threads_seen", "3", false},
    {"--huge-pages never", "status", "ok", false},
    {"--huge-pages madvise", "status", "ok", false},
    {"--membind interleave", "membind", "interleave", false},
    {"--order given", "status", "ok", false},
    {"--batch 3 --seq 7 --mem 5 --d-head 5", "d_head", "5", false},
    {"--same-length --seq 6 --mem 6", "same_length", "1", false},
    {"--seed 18446744073709551615", "status", "ok", false},
    {"--raw none", "status", "ok", false},
    {"--openblas-core Haswell", "status", "ok", false},
    {"--max-isa ref", "isa_used", "ref", false},
};

TEST_EACH(struct way *w, ways, each, EVERY(each_way), .timeout = 120)
{
    const char *const threads = strstr(w->words, "--threads") ? "" : "--threads 1";
    const char *const shape = strstr(w->words, "--seq") ? "" : "--seq 6 --mem 5";
    struct rows latency;

    if (w->cpus && sysconf(_SC_NPROCESSORS_ONLN) < 2)
        cr_skip_test("needs two CPUs");
    must_bench(BRIEF "--variant shaw,xl --backend auto --filter '!backend:openblas' --filter "
                     "'!backend:onednn' --filter '!backend:avx512' --workload layer %s %s %s",
               w->words, threads, shape);
    latency = latency_of("r/latest");
    cr_expect(latency.n == 4 || latency.n == 2, "%s: %zu rows", w->words, latency.n);
    for (size_t i = 0; i < latency.n; i++) {
        const struct latency_row *row = (const struct latency_row *)latency.row + i;
        char num[NUMBER_SIZE];
        int column = 0;
        while (strcmp(tables[TABLE_LATENCY].columns[column].name, w->column) != 0)
            column++;
        const char *value = row_field(&tables[TABLE_LATENCY], column, row, num);
        cr_expect_str_eq(row->status, "ok", "%s: %s", w->words, row->status_detail);
        cr_expect(strstr(value, w->value), "%s: %s is %s", w->words, w->column, value);
        cr_expect(row->max_rel_err <= row->err_limit, "%s", w->words);
    }
}

Test(ways, threads_are_an_axis)
{
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
        cr_skip_test("needs two CPUs");
    must_bench(BRIEF "--variant xl --backend ref --workload attn --seq 9 --mem 3 --threads 1,2");
    const struct latency_row *const row = must_rows("r/latest", TABLE_LATENCY, 2);
    NUMBERS({row[0].threads_seen, 1}, {row[1].threads_seen, 2});
}

Test(ways, unchecked_rows_say_so)
{
    struct ran r = must_bench(
        TINY
        "--variant xl --backend auto --workload attn --seq 4 --mem 0 --no-check --format table");
    struct rows rows = latency_of("r/latest");
    for (size_t i = 0; i < rows.n; i++) {
        const struct latency_row *row = (const struct latency_row *)rows.row + i;
        cr_expect_str_eq(row->status, "ok");
        cr_expect_eq(strncmp(row->status_detail, "unchecked", 9), 0, "%s", row->status_detail);
        cr_expect(isnan(row->max_abs_err) && isnan(row->max_rel_err) && isnan(row->err_limit));
    }
    HAS(r.out.data, " !");
}

/* The same seed gives the same results in every run, and another seed others. */
Test(ways, a_run_can_be_repeated)
{
    double err[3];

    for (int i = 0; i < 3; i++) {
        struct ran r = run_bench(
            "-q " TINY
            "--variant gtrxl --backend openblas --workload layer --seq 6 --mem 5 --seed %d",
            i < 2 ? 7 : 8);
        if (r.code == 6)
            cr_skip_test("openblas is not usable here");
        expect_exit(&r, 0);
        err[i] = ((const struct latency_row *)must_rows("r/latest", TABLE_LATENCY, 1))->max_rel_err;
    }
    cr_expect_eq(err[0], err[1]);
    cr_expect_neq(err[0], err[2]);
}

/* ---- cases that cannot run ---------------------------------------------------------------- */

/* Fifty gigabytes of operands: rows that say so, without allocating them. */
Test(ways, cases_larger_than_memory_are_skipped)
{
    struct ran r = bench_exits(77, "xl attn seq=65536 mem=65536 ref needs 1",
                               TINY "--variant xl --backend ref --workload attn --seq 65536 --mem "
                                    "65536 --batch 64 --d-model 2048 --heads 8");
    expect_said(&r, " GiB free  -> row marked skipped(memory); lower --seq or --batch");
    const struct latency_row *const row = must_rows("r/latest", TABLE_LATENCY, 1);
    const struct memory_row *const m = must_rows("r/latest", TABLE_MEMORY, 1);
    TEXTS({row->status, "skipped"}, {row->status_detail, "memory"});
    NUMBERS({row->median_ns, NAN}, {row->samples, I64_EMPTY}, {m->rss_peak_bytes, I64_EMPTY});
    cr_expect(m->arena_peak_bytes > (int64_t)64 << 30, "what it would take is known");
}

Test(ways, skipped_rows_do_not_change_the_code)
{
    struct ran r = run_bench(
        "-q " TINY "--variant xl --backend ref --workload attn --seq 4,65536 --mem 65536 --batch "
        "16 --d-model 8192 --heads 64 --filter 'seq<=4' --filter 'mem<=65536'");
    r = must_bench("-q " TINY "--variant xl --backend ref --workload attn --seq 4 --mem 0 --batch "
                   "1,1048576 --d-model 8192 --heads 64");
    cr_expect_eq(r.err.n, 0, "%s", r.err.data);
    struct rows rows = latency_of("r/latest");
    NUMBERS({count_status(&rows, "ok"), 1}, {count_status(&rows, "skipped"), 1});
}

/* ---- rerun -------------------------------------------------------------------------------- */

Test(ways, a_row_is_run_again_by_its_id)
{
    struct ran r = must_bench("-q " TINY "--variant gtrxl,shaw --backend ref --workload decode "
                              "--mem 9 --gate gru,output --clip 3 --pin none --seed 5");
    const struct latency_row *was = must_rows("r/latest", TABLE_LATENCY, 3);
    const char *const first = was->run_id;

    for (int i = 0; i < 3; i++, was++) { /* the latest run changes, the rows are still found */
        r = must_bench("rerun %.10s -q --out r --max-time 0.003 --min-samples 3 --warmup-ms 0 "
                       "--block-ms 0.5 --columns case_id,status",
                       was->case_id);
        const char *const id = kept_text("%.20s,ok\n", was->case_id);
        cr_expect(strstr(r.out.data, id), "%s: %s", was->repro, r.out.data);
        const struct latency_row *const is = must_rows("r/latest", TABLE_LATENCY, 1);
        cr_expect_str_eq(is->repro, was->repro);
        cr_expect_str_neq(is->run_id, first);
    }
}

Test(ways, rerun_of_what_is_not_there)
{
    must_bench("-q " TINY "--variant xl --backend ref --workload attn --seq 4,5 --mem 0");
    struct ran r = bench_exits(2, "bench: no case \"zzz\" in ", "rerun zzz --out r");
    expect_said(&r, "  -> see the column case_id of latency.csv");
    bench_exits(2, "bench: more than one case \"\" in ", "rerun '' --out r");
}

/* oneDNN says what it does on stdout, where the rows are. */
Test(ways, libraries_are_silent)
{
    const struct backend *const onednn = backend_find("onednn");

    if (!onednn)
        cr_skip_test("oneDNN was not built in");
    cr_assert_eq(setenv("DNNL_VERBOSE", "1", 1), 0);
    cr_assert_eq(setenv("ONEDNN_VERBOSE", "2", 1), 0);
    cr_assert_eq(setenv("MKL_VERBOSE", "1", 1), 0);
    EACH_TEXT (how, "exec", "fork", "none") {
        struct ran r = must_bench("--variant xl --backend onednn --workload attn --seq 8 --mem 0 "
                                  "-q --format csv --columns backend --isolate %s " TINY,
                                  how);
        cr_expect_str_eq(r.out.data, "backend\nonednn\n", "%s", how);
    }
}

/* OpenBLAS would wait for ever: with less address space than its buffers every command says so. */
Test(ways, too_little_address_space, .timeout = 240)
{
    if (SANITIZED || !backend_find("openblas"))
        cr_skip_test("needs OpenBLAS, and no sanitizer");
    struct ran r = shell_exits(1,
                               "bench: too little address space for OpenBLAS, 128 MiB per thread  "
                               "-> raise ulimit -v, or set OMP_NUM_THREADS\n",
                               "ulimit -v 200000 && exec \"$BENCH\" --version");
    cr_expect_str_eq(r.out.data, "");
}

/* ---- small stacks -------------------------------------------------------------------------- */

/* Products in blocks of every kind, of 520 columns and more rows than a block has: attention composed of
 * them and fused, on each backend that runs here. */
Test(ways, small_stacks, .timeout = 600)
{
    SKIP_SANITIZED("frames are larger under sanitizers");
    must_shell("ulimit -s 256; export OMP_STACKSIZE=128k; exec \"$BENCH\" -q --variant talking,xl "
               "--workload layer --phase fwd_bwd --seq 160 --mem 0 --pin none " BRIEF
               "--d-model 520 --threads 2");
    struct rows rows = latency_of("r/latest");
    cr_expect_gt(rows.n, 0);
    /* Peaks that other programs slowed make the product of 520 columns suspect: a matter of speed. */
    const struct latency_row *row = rows.row;
    for (size_t i = 0; i < rows.n; i++)
        cr_expect(strcmp(row[i].status, "ok") == 0 || strcmp(row[i].status, "suspect") == 0,
                  "%s %s: %s %s", row[i].variant, row[i].backend, row[i].status,
                  row[i].status_detail);
}

/* Below that a sentence, no signal. LLVM's runtime gives a thread a little more than it is told. */
Test(ways, too_small_stacks)
{
    static const struct {
        const char *line;
        int code;
        const char *said;
    } small[] = {
        {"ulimit -s 128; exec \"$BENCH\" list variants", 2,
         "bench: 128 KiB of stack, the program needs 256  -> raise ulimit -s\n"},
        {"export OMP_STACKSIZE=96k; exec \"$BENCH\" -q --backend ref --workload attn --mem 0 --seq "
         "4 --pin "
         "none " BRIEF "--threads 2 --isolate none",
         1, " KiB of stack, kernels need 128  -> raise OMP_STACKSIZE, or ulimit -s"},
    };

    SKIP_SANITIZED("needs small frames");
    for (size_t i = 0; i < ARRAY_LEN(small); i++) {
        struct ran r = shell_exits(small[i].code, NULL, "%s", small[i].line);
        cr_expect(strstr(r.err.data, small[i].said) || strstr(r.out.data, small[i].said), "%s%s",
                  r.out.data, r.err.data); /* a case's are in its row */
    }
}

/* Pauses between the groups, not before the first or after the last; cases have a clock rate. */
Test(ways, cool_down)
{
    static const char line[] = "--variant xl --backend ref --workload attn --mem 0 -q " TINY;
    struct timespec from, to;

    clock_gettime(CLOCK_MONOTONIC, &from);
    must_bench("%s --seq 4,5,6 --cool-down 1", line);
    clock_gettime(CLOCK_MONOTONIC, &to);
    const double s = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
    cr_expect_geq(s, 2);
    struct rows rows = latency_of("r/latest");
    for (size_t i = 0; i < rows.n; i++) {
        const double ratio = ((const struct latency_row *)rows.row)[i].clock_ratio;
        cr_expect(ratio > 0 && ratio < 1.5, "%g", ratio);
    }
    bench_exits(2, NULL, "%s --seq 4 --cool-down -1", line);
}

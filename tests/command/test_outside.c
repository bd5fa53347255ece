/* SPDX-License-Identifier: MIT
 *
 * Kernels from files (docs/kernels.md): fair ones are measured, others cost their own rows and no others. */
#include "harness/machine/peak.h"
#include "tests/judge/compiled.h"
#include "tests/support/sanitized.h"
#include "tests/support/tmp_folder.h"

TestSuite(outside, .init = folder_make, .fini = folder_remove, .timeout = 900);

/* Kernels of tests/judge under their names. */
static void compile(const char *names)
{
    compile_judged("kernels", "all.so -shared -fPIC");
    must_shell("for b in %s; do ln all.so $b.so || exit; done", names);
}

Test(outside, whole_sweep)
{
    static const struct {
        const char *backend, *status, *detail;
    } want[] = {
        {"./fair.so", "ok", ""},
        {"./wrong.so", "wrong", "max_rel_err"},
        {"./incomplete.so", "wrong", "max_rel_err"},
        {"./crashes.so", "failed", "killed by SIGSEGV"},
        {"./aborts.so", "failed", "killed by SIGABRT"},
        {"./ends.so", "failed", "ended"},
        {"./forks.so", "failed", "bad@0: it started a process  ->"},
        {"./leaves_process.so", "failed", "bad@0: it started a process  ->"},
        {"./rounds.so", "failed", "bad@0: it changed the rounding"},
        {"./masks_signals.so", "failed", "bad@0: it changed the signal mask"},
        {"./prints.so", "ok", ""},
        {"./none.so", "failed", "cannot load ./none.so: "},
        {"ref", "ok", ""},
    };

    SKIP_SANITIZED("sanitizers catch what kernels do");
    char list[512] = "";

    compile("fair wrong incomplete crashes aborts ends forks leaves_process rounds masks_signals "
            "prints");
    must_shell("echo none >none.so");
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        text_append(list, sizeof(list), "%s%s", i ? "," : "", want[i].backend);
    struct ran r =
        bench_exits(5, "not a row",
                    "-V vanilla -w attn --seq 37 --mem 0 " TINY "--format csv --backend %s", list);
    cr_expect_null(strstr(r.out.data, "not a row"), "%s", r.out.data);
    const struct rows latency = must_read("r/latest", TABLE_LATENCY);
    cr_assert_eq(latency.n, ARRAY_LEN(want));
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        for (size_t k = 0; k < latency.n; k++) {
            const struct latency_row *const row = (const struct latency_row *)latency.row + k;
            if (strcmp(row->backend, want[i].backend) != 0)
                continue;
            cr_expect_str_eq(row->status, want[i].status, "%s: %s", row->backend, row->status);
            cr_expect(!*want[i].detail || strstr(row->status_detail, want[i].detail), "%s: %s",
                      row->backend, row->status_detail);
            if (i == 0)
                cr_expect_str_eq(row->impl, "bad@0:attention");
        }
    must_shell("grep -c 'bad@0 ./fair.so xxh3=................;' r/latest/env.csv");
}

/* What the kernel does not have or refuses, our own do: backward, terms, products. */
Test(outside, the_rest_is_ours)
{
    compile("fair");
    struct ran r =
        must_bench("-V vanilla,shaw -w layer --phase fwd_bwd --seq 9 --mem 0 --kv-heads 1 " TINY
                   "--format csv --columns variant,impl,gemm_from,status --backend ./fair.so");
    HAS(r.out.data, "vanilla,bad@0:attention,", "shaw,fused,");
    cr_expect_null(strstr(r.out.data, ".so"), "%s", r.out.data);
}

Test(outside, refused)
{
    compile("fair");
    bench_exits(7, "cannot read kernel ./no.so: ", "-b ./no.so --dry-run");
    bench_exits(2, "--isolate none would load ./fair.so", "-b ./fair.so --isolate none");
    bench_exits(2, "over 63 characters", "-b './fair .so'");
}

/* The peak that a function is held to, in GFLOP/s: its rate by what it says to be of the peak. */
static double peak_said(const char *out, const char *function)
{
    const char *const at = strstr(out, kept_text("\"%s: ", function));
    double rate, pct;

    cr_assert(at && sscanf(at + strlen(function) + 1, ": %lg GFLOP/s, %lg %%", &rate, &pct) == 2);
    return 100 * rate / pct;
}

/* A kernel that has every function: libbenchattn, through both directions of the copies. Floats are not held to
 * a peak of bf16. */
Test(outside, every_function)
{
    SKIP_SANITIZED("the library is of builds for users");
    compile_judged("library",
                   "library.so -shared -fPIC \"$(dirname \"$BENCH\")\"/libbenchattn.so.1 "
                   "-Wl,-rpath,\"$(dirname \"$BENCH\")\"");
    struct ran r = must_bench("judge ./library.so --format csv");
    HAS(r.out.data,
        "attention 200 cases, 0 refused; attention backward 200 cases, 0 refused; "
        "recurrence 200 cases, 0 refused",
        "linear bf16 200 cases");
    const double ratio = peak_said(r.out.data, "linear bf16") / peak_said(r.out.data, "linear");
    cr_expect(peak_of_bf16(cpu_isa()) ? ratio > 1.5 : fabs(ratio - 1) < 0.3, "%g", ratio);
    /* Masks, whose arrays have no numbers yet when the room of backward is asked for. */
    must_bench("-b ./library.so --variant bigbird --workload attn,layer --phase fwd_bwd --seq 40 "
               "--mem 0 " TINY);
}

/* ---- bench judge ---------------------------------------------------------------------------- */

/* Each trap has a kernel that falls into it, and the fair one passes. */
Test(outside, traps)
{
    static const struct {
        const char *kernel, *row, *evidence;
        int code;
    } want[] = {
        {"fair", "\nright,yes,,\"bad@0: attention ", "refused; seed 3", 0},
        {"prints", "\nright,yes,", "", 0},
        {"wrong", "\nright,no,wrong,", " L 37 M ", 5},
        {"stale", "\nright,no,stale,", "of an earlier call", 5},
        {"crashes", "\nright,no,crashed,", "killed by SIGSEGV", 5},
        {"ends", "\nright,no,crashed,", "ended", 5},
        {"incomplete", "\ncomplete,no,incomplete,", " is nan, not ", 5},
        {"outside_before", "\ncomplete,no,writes outside,", "beside an array", 5},
        {"outside_after", "\ncomplete,no,writes outside,", "killed by SIGSEGV, where arrays", 5},
        {"outside_far", "\ncomplete,no,writes outside,", ": before o", 5},
        {"outside_between", "\ncomplete,no,writes outside,", ", not untouched", 5},
        {"outside_operand", "\ncomplete,no,writes outside,", "operands changed", 5},
        {"defers", "\nhonest,no,defers,", "for new numbers", 3},
        {"defers", "\nfast,no,too fast,", "of the measured peak", 3},
        /* Seen by its time, or on a busy machine by its thread. */
        {"spins", "\nhonest,no,threads,", "", 3},
        {"more_threads", "\nhonest,no,threads,", "2 threads, of which 1 ", 3},
        {"rounds", "\nhonest,no,state,", "the rounding", 3},
        {"flushes", "\nhonest,no,state,", "or denormals", 3},
        {"masks_signals", "\nhonest,no,state,", "the signal mask", 3},
        {"locale", "\nhonest,no,state,", "the locale", 3},
        {"enables_traps", "\nhonest,no,state,", "the rounding", 3},
        {"moves", "\nhonest,no,threads,", "the CPUs that the calling thread may use", 3},
        {"forks", "\nhonest,no,state,", "started a process", 3},
        {"varies", "\nright,remark,varies,attention", "", 0},
    };

    SKIP_SANITIZED("sanitizers catch what kernels do");
    struct ran r = {0}, three = {0};
    compile("");
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        if (i == 0 || strcmp(want[i].kernel, want[i - 1].kernel) != 0) {
            must_shell("ln all.so %s.so", want[i].kernel);
            r = bench_exits(want[i].code, NULL, "judge ./%s.so --seed 3 --format csv",
                            want[i].kernel);
        }
        HAS(r.out.data, want[i].row, want[i].evidence);
        three = i ? three : r;
    }
    const struct ran four = bench_exits(0, NULL, "judge ./fair.so --seed 4 --format csv");
    const char *const a = strstr(three.out.data, " cases, "),
                      *b = strstr(four.out.data, " cases, ");
    cr_expect(a && b && strncmp(a, b, strlen(" cases, 1234")) != 0, "a seed chooses cases");
    bench_exits(2, "takes a kernel by its path", "judge fair.so");
    must_shell("echo none >none.so");
    bench_exits(7, "cannot load ./none.so", "judge ./none.so");
}

/* Somebody else's kernel, where contrib/kernels/ggml.sh has built it. */
Test(outside, ggml)
{
    if (run_shell("test -e \"$SRC\"/build/kernels/ggml.so").code != 0)
        cr_skip_test("no build/kernels/ggml.so");
    struct ran r = run_shell("\"$BENCH\" judge \"$SRC\"/build/kernels/ggml.so --format csv");
    cr_expect(r.code == 0 || r.code == 3, "%d", r.code);
    HAS(r.out.data, "right,yes", "complete,yes", " cases, ");
}

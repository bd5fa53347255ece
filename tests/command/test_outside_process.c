/* SPDX-License-Identifier: MIT
 *
 * Kernels that are processes (docs/kernels.md): measured and judged as those from files, by a small one in C
 * and, where there are packages for it, by those in Python. */
#include "tests/judge/compiled.h"
#include "tests/support/sanitized.h"
#include "tests/support/tmp_folder.h"

#include <signal.h>

TestSuite(outside_process, .init = folder_make, .fini = folder_remove, .timeout = 900);

static void compile(void) { compile_judged("process", "process"); }

/* Does the process end whose number the file has? */
static bool ends(const char *file)
{
    char *const text = must_shell("cat %s", file).out.data;
    const pid_t pid = (pid_t)atoi(text);

    cr_assert_gt(pid, 1, "%s", text);
    for (int i = 0; i < 100 && !has_ended(pid); i++)
        usleep(50000);
    return has_ended(pid);
}

/* Each costs its own rows and no others. */
Test(outside_process, whole_sweep)
{
    static const struct {
        const char *mode, *status, *detail;
    } want[] = {
        {"fair", "ok", ""},
        {"spawns", "ok", ""},
        {"wrong", "wrong", "max_rel_err"},
        {"incomplete", "wrong", "max_rel_err"},
        {"crashes", "failed", "kernel process: killed by SIGSEGV  -> run: ./process crashes"},
        {"ends", "failed", "kernel process: child process ended with exit code 3  ->"},
        {"errs", "failed", "it answered error ValueError: not today"},
        {"answers_nonsense", "failed", "it answered fine, thank you"},
        {"why_is_odd", "failed", "it answered perhaps"},
        {"beside", "failed", "it wrote beside an array in attention_forward"},
        {"never_speaks", "failed", "ended with exit code 4"},
        {"speaks_7", "failed", "it answered bench-kernel 7"},
        {"speaks_else", "failed", "it answered hello"},
        {"empty_is_odd", "failed", "to an empty call it answered ok"},
        {"moves", "skipped", "runs on other CPUs"},
        {"cannot", "skipped", "cannot run here: it needs a GPU"},
    };
    char list[1024] = "exec:./none";

    compile();
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        text_append(list, sizeof(list), ",exec:./process %s", want[i].mode);
    struct ran r = bench_exits(
        5, "not a row", "-V vanilla -w attn --seq 37 --mem 5 " TINY "--format csv --backend '%s'",
        list);
    cr_expect_null(strstr(r.out.data, "not a row"), "%s", r.out.data);
    const struct rows latency = must_read("r/latest", TABLE_LATENCY);
    cr_assert_eq(latency.n, ARRAY_LEN(want) + 1);
    for (size_t k = 0; k < latency.n; k++) {
        const struct latency_row *const row = (const struct latency_row *)latency.row + k;
        const char *const mode = strchr(row->backend, ' ');
        for (size_t i = 0; mode && i < ARRAY_LEN(want); i++)
            if (strcmp(mode + 1, want[i].mode) == 0) {
                cr_expect_str_eq(row->status, want[i].status, "%s: %s, %s", row->backend,
                                 row->status, row->status_detail);
                cr_expect(strstr(row->status_detail, want[i].detail), "%s: %s", row->backend,
                          row->status_detail);
                if (i == 0)
                    cr_expect_str_eq(row->impl, "process@1:attention");
            }
        if (!mode)
            cr_expect(strstr(row->status_detail, "ended with exit code 127"), "%s",
                      row->status_detail);
    }
    must_shell("grep -c 'process@1 exec:./process fair xxh3=................ empty=0.1us,.*us;' "
               "r/latest/env.csv");
    cr_expect(ends("spawns"), "its child goes on");
    /* The hash is that of the files, too. */
    must_shell(
        "grep -o 'fair xxh3=[0-9a-f]*' r/latest/env.csv >a; cp process copy; echo >>copy; mv "
        "copy process");
    must_bench("-V vanilla -w attn --seq 3 --mem 0 " TINY "-b 'exec:./process fair'");
    must_shell("grep -o 'fair xxh3=[0-9a-f]*' r/latest/env.csv >b; ! cmp a b");
}

/* A row can be run again by its options; what the process has not, our own do. */
Test(outside_process, like_any_backend)
{
    compile();
    struct ran r =
        must_bench("-V vanilla,shaw -w layer --phase fwd_bwd --seq 9 --mem 0 --kv-heads 1 "
                   "--threads 2 --format csv --columns variant,impl,status " BRIEF
                   "--backend 'exec:./process'");
    HAS(r.out.data, "vanilla,process@1:attention,ok", "shaw,fused,ok");
    must_bench("rerun $(sed -n 2p r/latest/latency.csv | cut -d, -f4) r/latest");
    must_bench("check --backend 'exec:./process' --variant vanilla");
    /* The line of a scoring has the whole command: its first word alone is no kernel. */
    must_shell("yes 'one two three' | head -c 4096 >text; echo 'exec ./process' >go");
    must_bench("train -V vanilla --layers 1 --d-model 16 --heads 2 --seq 16 --mem 0 --steps 1 "
               "--corpus text --ckpt m --backend 'exec:sh go'");
    must_bench("eval --ckpt m --corpus text --bytes 64 --backend 'exec:sh go'");
    bench_exits(2, "a comma ends the command before it", "-b 'exec:./process a,b' --dry-run");
    bench_exits(2, "has a comma", "judge 'exec:./process a,b'");
    bench_exits(2, "--isolate none would load", "-b exec:./process --isolate none");
}

/* Nothing but the kernel's own time: an array of a call has some megabytes here. */
Test(outside_process, time_is_its_own)
{
    compile();
    must_bench("-V vanilla -w attn --seq 1 --mem 40000 --no-check " TINY
               "-b 'exec:./process naps,exec:./process lies'");
    const struct rows latency = must_read("r/latest", TABLE_LATENCY);
    for (size_t k = 0; k < latency.n; k++) {
        const struct latency_row *const row = (const struct latency_row *)latency.row + k;
        const char *const mode = strchr(row->backend, ' ') + 1;
        if (strcmp(mode, "naps") == 0) /* says 2 ms, which it takes */
            cr_expect(row->median_ns >= 2e6 && row->median_ns < 2.2e6, "%g", row->median_ns);
        else /* says 1 ns, and computes for over 2 ms */
            cr_expect_gt(row->median_ns, 1e6, "%s: %g", mode, row->median_ns);
    }
}

Test(outside_process, ends_with_bench)
{
    compile();
    struct program p =
        start_bench("-V vanilla -w attn --seq 9 --mem 0 " TINY "-b 'exec:./process hangs'");
    must_shell("while ! [ -s hangs ]; do sleep 0.05; done");
    kill(p.pid, SIGKILL);
    cr_expect(ends("hangs"));
}

/* Silent for a minute; both at the same time. Processes have five, by the same code. */
Test(outside_process, hangs)
{
    SKIP_SANITIZED("sanitizers catch what kernels do");
    compile_judged("kernels", "hangs.so -shared -fPIC");
    struct ran r =
        must_shell("{ \"$BENCH\" judge ./hangs.so --format csv; echo \"exit $?\"; } & "
                   "\"$BENCH\" -V vanilla -w attn --seq 9 --mem 0 " TINY
                   "--format csv --columns backend,status,status_detail -b ./hangs.so,ref; "
                   "echo \"exit $?\"; wait");
    HAS(r.out.data, "right,no,timed out,\"attention", "exit 5", "exit 1", "ref,ok,",
        "./hangs.so,timeout,is silent for 60 s");
}

/* ---- in Python ------------------------------------------------------------------------------ */

/* Without packages: a kernel that does nothing, and exceptions. */
Test(outside_process, python_alone)
{
    need_programs("python3");
    must_shell("ln -s \"$SRC\"/contrib . && printf '%%s\\n' 'import sys' "
               "'sys.path.insert(0, \"contrib/python\")' 'import bench_kernel' "
               "'k = bench_kernel.Kernel(\"mine\", 2, arrays=None)' "
               "'@k.attention_forward(why=lambda a: \"is for few queries\" if a.M else None)' "
               "'def f(a):' '    print(\"said\")' '    raise ValueError(\"not,\\n today\")' "
               "'k.serve()' >mine.py");
    must_bench("-V vanilla -w attn --seq 9 --mem 0 --no-check " TINY
               "-b 'exec:python3 contrib/python/bench_kernel.py'");
    struct ran r = bench_exits(1, "said",
                               "-V vanilla -w attn --seq 9 --mem 0,4 " TINY
                               "--format csv --columns mem_tokens,impl,status,status_detail "
                               "-b 'exec:python3 mine.py'");
    HAS(r.out.data, "error ValueError: not, today", "4,fused,ok");
}

/* `line` with a Python that has these modules, as python3; or skipped by name. */
static void run_python(const char *modules, const char *line)
{
    struct ran r =
        run_shell("ln -s \"$SRC\"/contrib .; python3 -c 'import %s' 2>/dev/null || exit 78; "
                  "%s",
                  modules, line);

    if (r.code == 78)
        cr_skip_test("no python3 with %s", modules);
    expect_exit(&r, 0);
    HAS(r.out.data, "right,yes", "complete,yes", " cases, ");
}

Test(outside_process, python_numpy)
{
    run_python("numpy",
               "cp \"$SRC\"/tests/judge/numpy_kernel.py .; "
               "\"$BENCH\" judge 'exec:python3 numpy_kernel.py' --format csv || [ $? = 3 ]");
}

Test(outside_process, python_torch)
{
    run_python(
        "torch",
        "\"$BENCH\" judge 'exec:python3 contrib/kernels/torch_sdpa.py' --format csv || [ $? = 3 ]");
}

Test(outside_process, python_transformers)
{
    run_python("transformers.models.qwen3_next",
               "\"$BENCH\" judge 'exec:python3 contrib/kernels/transformers_gated_delta.py' "
               "--format csv || [ $? = 3 ]");
}

Test(outside_process, python_onnxruntime)
{
    run_python("onnx, onnxruntime",
               "for k in ort_gqa ort_linear_attention; do \"$BENCH\" judge \"exec:python3 "
               "contrib/kernels/$k.py\" --format csv || [ $? = 3 ] || exit 1; done");
}

/* ---- bench judge ---------------------------------------------------------------------------- */

Test(outside_process, judged)
{
    SKIP_SANITIZED("a judge takes minutes under them; sweeps call processes, too");
    static const struct {
        const char *mode, *row, *evidence;
        int code;
    } want[] = {
        {"fair", "\nright,yes,,\"process@1: attention 200 cases, ", "refused; seed 3", 0},
        {"lies", "\nhonest,no,defers,", "not in the time that it says", 3},
        {"sleeps", "\nhonest,no,defers,", "not in the time that it says", 3},
        {"wrong", "\nright,no,wrong,", "attention: ", 5},
        {"stale", "\nright,no,stale,", "of an earlier call", 5},
        {"incomplete", "\ncomplete,no,incomplete,", " is nan, not ", 5},
        {"crashes", "\nright,no,crashed,", "killed by SIGSEGV", 5},
        {"errs", "\nright,no,crashed,", "ValueError: not today", 5},
        {"beside", "\nright,no,crashed,", "it wrote beside an array", 5},
        {"defers", "\nhonest,no,defers,", "for new numbers", 3},
        {"spins", "\nhonest,no,threads,", "of CPU time in the 60 ms after", 3},
        {"moves_later", "\nhonest,no,threads,", "the CPUs", 3},
    };

    compile();
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        struct ran r = bench_exits(want[i].code, NULL,
                                   "judge 'exec:./process %s' --seed 3 --format csv", want[i].mode);
        HAS(r.out.data, want[i].row, want[i].evidence);
    }
    bench_exits(7, "kernel ./none: child process ended with exit code 127", "judge exec:./none");
    bench_exits(7, "it answered bench-kernel 7", "judge 'exec:./process speaks_7'");
    bench_exits(6, "it needs a GPU", "judge 'exec:./process cannot'");
}

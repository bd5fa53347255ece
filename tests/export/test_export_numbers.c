/* SPDX-License-Identifier: MIT
 *
 * Every number of a row in each format. */
#include "tests/support/program.h"
#include "tests/support/run_folder.h"

TestSuite(export_numbers, .init = folder_make, .fini = folder_remove);

#define FAST "xl layer seq=8 mem=0 avx2"
static const struct made_case fast = {"xl", "avx2", "00000000000000aa", 8, 1500};

/* No two numbers of it are alike, so that none can stand in another's place. */
static void make_odd_run(struct rundir *dir)
{
    struct env_row env = env_row_empty();

    *dir = made_open("abcdef1");
    struct key_row k = made_key(dir, &fast, "a host");
    text_put(k.repro, LINE_SIZE, "bench --a-layer");
    struct latency_row row = ROW_OF(latency, LATENCY, &k);
    row.samples = 6;
    row.inner_calls = 7;
    row.min_ns = 1100, row.ci95_low_ns = 1200, row.median_ns = 1500, row.mean_ns = 1600;
    row.ci95_high_ns = 1900, row.max_ns = 2000, row.cpu_time_median_ns = 1300;
    struct memory_row memory = ROW_OF(memory, MEMORY, &k);
    memory.arena_peak_bytes = 4096;
    text_put(k.repro, LINE_SIZE, "bench eval");
    struct perplexity_row ppl = ROW_OF(perplexity, PERPLEXITY, &k);
    ppl.ppl_ci95_low = 3, ppl.ppl = 4, ppl.ppl_ci95_high = 7;
    made_write(dir, TABLE_MEMORY, &memory);
    made_write(dir, TABLE_LATENCY, &row);
    made_write(dir, TABLE_PERPLEXITY, &ppl);
    text_put(env.run_id, TEXT_SIZE, dir->run_id);
    text_put(env.host_id, TEXT_SIZE, "a host");
    text_put(env.git_commit, TEXT_SIZE, "a commit");
    env.exit_code = 0;
    MUST(rundir_env(dir, &env, &failure));
    MUST(rundir_close(dir, &failure));
}

Test(export_numbers, of_a_row_in_each_format)
{
#define OF_CASE                                                                                    \
    "{case=\"" FAST "\",variant=\"xl\",backend=\"avx2\",workload=\"layer\",host_id=\"a host\","    \
    "commit=\"a commit\"}"
    static const struct {
        const char *to, *says;
    } want[] = {
        {"json", "\"iterations\":42,"},
        {"json", "\"real_time\":1500,"},
        {"json", "\"cpu_time\":1300,"},
        {"openmetrics", "\nbench_median_seconds" OF_CASE " 1.5e-06\n"},
        {"openmetrics", "\nbench_median_low_seconds" OF_CASE " 1.2e-06\n"},
        {"openmetrics", "\nbench_median_high_seconds" OF_CASE " 1.9e-06\n"},
        {"openmetrics", "\nbench_arena_bytes" OF_CASE " 4096\n"},
        {"openmetrics", "\nbench_perplexity{case=\"bench eval\",host_id=\"a host\",commit=\"a "
                        "commit\"} 4\n"},
        {"junit", "name=\"" FAST "\" time=\"0.000001500\"/>"},
        {"fom", "fom 00000000000000aa time 1500 ns\n"},
        {"fom", "fom 00000000000000aa arena 4096 bytes\n"},
        {"fom", "fom 00000000000000aa perplexity 4 1\n"},
    };
    struct rundir dir;

    make_odd_run(&dir);
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        struct ran r = must_bench("export --to %s %s", want[i].to, dir.path);
        cr_expect(strstr(r.out.data, want[i].says), "no %s in %s", want[i].says, r.out.data);
    }
}

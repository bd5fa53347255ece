/* SPDX-License-Identifier: MIT
 *
 * Shards and merging: the shards of a plan add up to the plan; merged tables equal the unsharded
 * sweep's except for what depends on the clock. Baselines: per machine, nothing overwritten. */
#include "tests/support/command_line.h"
#include "tests/support/program.h"
#include "tests/support/run_folder.h"

TestSuite(merge, .init = folder_make, .fini = folder_remove, .timeout = 120);
TestSuite(baseline, .init = folder_make, .fini = folder_remove, .timeout = 120);

/* ---- plans --------------------------------------------------------------------------------- */

static const char AXES[] = "bench --variant base,gqa,bert,gla --workload attn,layer,decode --seq "
                           "4,8,16 --mem 0,8 --backend ref";

/* Every case of the whole plan is in exactly one shard, with its whole group, in its order. */
Test(merge, shards_are_the_plan)
{
    struct plan whole = planned(AXES + strlen("bench "));
    for (int n = 1; n <= 9; n += n < 4 ? 1 : 5) {
        int *owner = room((size_t)whole.n, sizeof(*owner)), cases = 0, groups = 0;
        for (int i = 1; i <= n; i++) {
            int last = -1;
            const char *const line = kept_text("%s --shard %d/%d", AXES + strlen("bench "), i, n);
            struct plan part = planned("%s", line);
            for (int k = 0; k < part.n; k++) {
                int at = 0;
                while (at < whole.n && strcmp(whole.cases[at].case_id, part.cases[k].case_id) != 0)
                    at++;
                cr_assert_lt(at, whole.n, "%s: %s is not in the plan", line, part.cases[k].repro);
                cr_expect_eq(owner[at], 0, "%s: %s twice", line, part.cases[k].repro);
                cr_expect_lt(last, at, "%s: out of order", line);
                cr_expect_eq(whole.cases[at].group, part.cases[k].group);
                owner[at] = i;
                last = at;
            }
            cases += part.n;
            groups += part.groups;
        }
        cr_expect_eq(cases, whole.n, "n = %d", n);
        cr_expect_eq(groups, whole.groups, "n = %d", n);
        for (int k = 1; k < whole.n; k++)
            if (whole.cases[k].group == whole.cases[k - 1].group)
                cr_expect_eq(owner[k], owner[k - 1], "n = %d cuts a group", n);
    }
}

Test(merge, shard_words)
{
    EACH_TEXT (bad, "0/2", "3/2", "1", "1/", "/2", "a/b", "1/2x", "-1/2", "1/0")
        bench_exits(2, "not I/N", "list cases --shard %s", bad);
    bench_exits(2, "the plan has 2 groups only  -> use at most 2 shards",
                "list cases --seq 4,8 --mem 0 --shard 1/3");
}

/* ---- runs ---------------------------------------------------------------------------------- */

#define SWEEP                                                                                      \
    "--variant xl,vanilla --backend ref --workload attn,layer --seq 4,8 --mem 0,8 " TINY "-q "

/* Columns that depend on the clock or on the folder. */
static bool same_row(const struct table *t, const void *a, const void *b, const char **column)
{
    static const char *const differ[] = {"run_id", "started_at_utc", "status_detail", NULL};

    for (int i = 0; i < KEY_COUNT; i++) {
        char x[NUMBER_SIZE], y[NUMBER_SIZE];
        bool skip = false;
        for (int k = 0; differ[k]; k++)
            skip = skip || strcmp(t->columns[i].name, differ[k]) == 0;
        *column = t->columns[i].name;
        if (!skip && strcmp(row_field(t, i, a, x), row_field(t, i, b, y)) != 0)
            return false;
    }
    return true;
}

Test(merge, is_the_unsharded_run)
{
    must_bench(SWEEP "--out whole");
    for (int i = 1; i <= 3; i++)
        must_bench(SWEEP "--out s%d --shard %d/3", i, i);
    must_bench("merge s2/latest s3/latest s1/latest --out merged");
    const enum table_id ids[] = {TABLE_LATENCY, TABLE_MEMORY};
    for (size_t k = 0; k < ARRAY_LEN(ids); k++) {
        const struct table *t = &tables[ids[k]];
        struct rows whole = must_read("whole/latest", ids[k]);
        struct rows merged = must_read("merged/latest", ids[k]);
        cr_assert(whole.n == 16 && merged.n == whole.n, "%zu and %zu rows", whole.n, merged.n);
        for (size_t i = 0; i < whole.n; i++) {
            const char *a = (char *)whole.row + i * t->row_size;
            const char *b = (char *)merged.row + i * t->row_size;
            const char *column = NULL;
            cr_expect(same_row(t, a, b, &column), "%s row %zu: %s differs", t->name, i, column);
        }
        const struct memory_row *w = whole.row, *m = merged.row;
        for (size_t i = 0; i < whole.n && ids[k] == TABLE_MEMORY; i++)
            cr_expect_eq(w[i].arena_peak_bytes, m[i].arena_peak_bytes);
    }
    /* It has samples: a merged run can be compared. */
    must_bench("compare --axis variant --base xl merged/latest");
}

Test(merge, refuses)
{
    for (int i = 1; i <= 2; i++)
        must_bench(SWEEP "--out s%d --shard %d/2", i, i);
    must_bench(SWEEP "--out other --shard 2/2 --seed 5");
    must_bench(SWEEP "--out whole");
    static const struct {
        int code;
        char words[80], says[60];
    } faults[] = {
        {2, "merge", "merge needs"},
        {2, "merge s1/latest", "shard 2/2 is missing"},
        {2, "merge s2/latest", "shard 1/2 is missing"},
        {2, "merge s1/latest s1/latest", "twice"},
        {2, "merge s1/latest s2/latest s2/latest", "twice"},
        {2, "merge s1/latest other/latest", "different options: seed=1, seed=5"},
        {2, "merge s1/latest whole/latest", "is not a shard"},
        {7, "merge s1/latest nowhere", "nowhere"},
    };
    for (size_t i = 0; i < ARRAY_LEN(faults); i++)
        bench_exits(faults[i].code, faults[i].says, "%s --out merged", faults[i].words);
    shell_exits(1, NULL, "test -e merged");
}

/* A shard with the rows of one group as another machine would have them. */
static void edit_host(const char *run)
{

    must_shell("cd %s/latest && host=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "
               "\"host_id\") at = i } NR == 2 { print $at }' latency.csv) && sed -i "
               "\"s/$host/00000000000000ff/g\" *.csv run.json",
               run);
}

static size_t rows_of_other(const struct rows *latency)
{
    const struct latency_row *const row = latency->row;
    size_t other = 0;

    for (size_t i = 0; i < latency->n; i++)
        other += strcmp(row[i].host_id, "00000000000000ff") == 0;
    return other;
}

/* Both machines stay, each with its row of env.csv; no ratio has a side of each. */
Test(merge, unlike_machines)
{
    struct ran r;

    for (int i = 1; i <= 2; i++)
        must_bench("--variant xl --backend ref --workload attn --seq 4 --mem 0 --batch 1,2 " TINY
                   "-q --out s%d --shard %d/2",
                   i, i);
    edit_host("s2");
    bench_exits(0, "00000000000000ff", "merge s1/latest s2/latest --out merged");
    struct rows latency = must_read("merged/latest", TABLE_LATENCY);
    struct rows env = must_read("merged/latest", TABLE_ENV);
    NUMBERS({latency.n, 2}, {rows_of_other(&latency), 1}, {env.n, 2});
    r = bench_exits(4, "two machines", "compare --axis batch --format csv merged/latest");
    HAS(r.out.data, "other machine");
}

Test(merge, of_some_shards)
{
    must_bench(SWEEP "--out s2 --shard 2/4");
    struct ran r = bench_exits(0, "shard 1/4 is missing", "merge s2/latest --out merged --partial");
    expect_said(&r, "shard 3/4 is missing");
    expect_said(&r, "shard 4/4 is missing");
    struct rows a = must_read("s2/latest", TABLE_LATENCY),
                b = must_read("merged/latest", TABLE_LATENCY);
    cr_expect(a.n > 0 && a.n == b.n, "%zu and %zu rows", a.n, b.n);
    r = run_bench("export --to fom merged/latest");
    HAS(r.out.data, "bench: 0 wrong, 0 failed, not finished\n");
    bench_exits(2, NULL, "merge s2/latest s2/latest --out twice --partial");
}

/* ---- baselines ----------------------------------------------------------------------------- */

#define ONE "--variant xl --backend ref --workload attn --seq 4 --mem 0 " TINY "-q "

Test(baseline, is_saved_compared_shown_and_removed)
{
    must_bench(ONE "--save-baseline main");
    bench_exits(2, "baseline \"main\" exists", ONE "--save-baseline main");
    struct ran r = bench_exits(0, "xl attn seq=4 mem=0 ref", ONE "--baseline main");
    cr_expect(!strstr(r.out.data, "old"), "standard output is the latency rows only");
    bench_exits(2, NULL, "baseline save main --out r");
    must_bench("baseline save main --force --out r");
    must_bench("baseline save second --out r");
    r = run_bench("baseline list --out r --format csv");
    HAS(r.out.data, "\nmain,yes,", "\nsecond,yes,");
    must_bench("compare main second --out r");
    r = run_bench("baseline show main --out r --format csv");
    HAS(r.out.data, "ref,attn");
    must_bench("baseline rm main --out r");
    bench_exits(4, NULL, "baseline show main --out r");
}

Test(baseline, missing_or_of_another_machine)
{
    const struct made_case c = {"v", "ref", "1111", 4, 1000};

    bench_exits(4, "no baseline \"main\"", ONE "--baseline main");
    struct rundir dir = made_open("aaaa");
    made_row(&dir, &c, "0123456789abcdef", "ok", "", 1);
    made_sample(&dir, c.id, 0, 1000, 0);
    made_close(&dir, "0123456789abcdef", "Another CPU");
    struct ran r =
        bench_exits(7, NULL, "baseline save main %s --out r", dir.path); /* r does not exist yet */
    must_shell("mkdir r");
    must_bench("baseline save main %s --out r", dir.path);
    r = bench_exits(4, "baseline \"main\" is from another machine (Another CPU, here ",
                    ONE "--baseline main");
    cr_expect(r.out.n == 0, "nothing measured, nothing compared: %s", r.out.data);
}

Test(baseline, refuses)
{
    static const struct {
        int code;
        char words[60], says[40];
    } faults[] = {
        {2, "baseline", "baseline needs a verb  -> "},
        {2, "baseline keep x", "unknown baseline"},
        {2, "baseline save", "needs a name"},
        {2, "baseline save ../x", "is not a name"},
        {2, "baseline rm .x", "is not a name"},
        {4, "baseline rm x", "no baseline"},
        {7, "baseline save x", "no run"},
        {2, "list --baseline x", "does not apply"},
        {2, "sweep --save-baseline a/b", "is not a name"},
    };

    for (size_t i = 0; i < ARRAY_LEN(faults); i++)
        bench_exits(faults[i].code, faults[i].says, "%s", faults[i].words);
    must_bench(ONE "--no-check");
    bench_exits(4, "unchecked", "baseline save x --out r");
}

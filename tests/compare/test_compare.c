/* SPDX-License-Identifier: MIT
 *
 * Comparisons of runs with known numbers: what is matched, what is paired, what is refused, and the
 * output. */
#include "harness/compare/compare.h"
#include "harness/table/keys.h"
#include "tests/support/kernel/simd.h"
#include "tests/support/pasted.h"
#include "tests/support/pty.h"
#include "tests/support/run_folder.h"

TestSuite(compare, .init = folder_make, .fini = folder_remove, .timeout = 240);

static const struct made_case base = {"v", "one", "1111", 128, 1000},
                              other = {"v", "two", "2222", 128, 1200},
                              longer = {"v", "one", "3333", 256, 2000};

/* Along backends from "one", or of two runs; kept until the test ends. */
static struct comparisons by_backend(const struct run *r)
{
    struct comparisons c = {0};

    MUST(compare_axis(&c, r, "backend", "one", 0.02, 1, &failure));
    kept_copy(&c, sizeof(c));
    return c;
}

static struct comparisons of_runs(const struct rundir dir[2])
{
    const struct run before = must_run(dir[0].path), after = must_run(dir[1].path);
    struct comparisons c = {0};

    compare_runs(&c, &before, &after, 0.02, 1);
    kept_copy(&c, sizeof(c));
    return c;
}

/* Twenty rounds in which `base` and `other` take turns on a machine that gets ten times slower. */
static void write_interleaved(struct rundir *r, int disturbed)
{
    for (int round = 0; round < 20; round++) {
        const double level = 1 + 0.5 * round;
        const bool swap = round % 3 == 0;
        for (int k = 0; k < 2; k++) {
            const struct made_case *c = (k == 0) != swap ? &base : &other;
            const bool hit = round < disturbed && c == &other;
            made_sample(r, c->id, round, c->ns * level * (hit ? 5 : 1), hit);
        }
    }
}

/* A run of these cases in as many rounds. */
static void write_cases(struct rundir *r, const struct made_case *const *c, int n, int rounds)
{
    *r = made_open("aaaa");
    for (int i = 0; i < n; i++)
        made_row(r, c[i], "host", "ok", "", 100);
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < n; i++)
            made_sample(r, c[i]->id, round, c[i]->ns, 0);
}
#define CASES(...)                                                                                 \
    (const struct made_case *const[]){__VA_ARGS__},                                                \
        ARRAY_LEN(((const struct made_case *const[]){__VA_ARGS__}))

Test(compare, axis_pairs_by_round)
{
    struct rundir dir;

    write_cases(&dir, CASES(&base), 0);
    made_row(&dir, &other, "host", "ok", "", 200);
    write_interleaved(&dir, 4);
    struct run r = made_read(&dir);
    struct comparisons c = by_backend(&r);
    cr_assert_eq(c.n, 1);
    const struct comparison *one = &c.v[0];
    NUMBERS({one->change.basis, BASIS_PAIRS}, {one->change.n, 20}, {one->change.disturbed, 4});
    /* The level cancels; any other interval would be wide. */
    cr_expect(fabs(one->change.log.low - log(1.2)) < 1e-9);
    cr_expect(fabs(one->change.log.high - log(1.2)) < 1e-9);
    cr_expect_eq(one->change.verdict, VERDICT_SLOWER);
    TEXTS({one->name[BEFORE], "one"}, {one->name[AFTER], "two"},
          {one->label, "v layer seq=128 mem=0"});
    cr_expect(one->arena_bytes[BEFORE] == 100 && one->arena_bytes[AFTER] == 200);

    /* Without --base the first value of the run is the base. */
    c = (struct comparisons){0};
    MUST(compare_axis(&c, &r, "backend", NULL, 0.02, 1, &failure));
    cr_expect(c.n == 1 && strcmp(c.v[0].name[BEFORE], "one") == 0);
    comparisons_free(&c);
    REFUSED(compare_axis(&c, &r, "backend", "three", 0.02, 1, &failure), E_USAGE, "one, two");
    comparisons_free(&c);
    cr_expect_eq(compare_axis(&c, &r, "colour", "red", 0.02, 1, &failure), E_USAGE);
    comparisons_free(&c);
}

/* Pairs that are left out differ from rival to rival, the base's time does not. */
Test(compare, one_base_has_one_time)
{
    static const struct made_case third = {"v", "three", "4444", 128, 1500};
    struct rundir dir;

    write_cases(&dir, CASES(&base, &other, &third), 0);
    write_interleaved(&dir, 6);
    for (int round = 0; round < 20; round++)
        made_sample(&dir, third.id, round, third.ns * (1 + 0.5 * round), round > 15);
    struct run r = made_read(&dir);
    const struct comparisons c = by_backend(&r);
    cr_assert_eq(c.n, 2);
    cr_expect_neq(c.v[0].change.median[BEFORE], c.v[1].change.median[BEFORE]);
    for (int i = 0; i < 2; i++)
        cr_expect_eq(comparison_ns(&c.v[i], BEFORE), base.ns);
    NUMBERS({comparison_ns(&c.v[0], AFTER), other.ns}, {comparison_ns(&c.v[1], AFTER), third.ns});
}

/* --order given: the same round numbers, but at another time. */
Test(compare, cases_measured_alone_are_no_pairs)
{
    struct rundir dir;

    write_cases(&dir, CASES(&base, &other), 0);
    for (int k = 0; k < 2; k++)
        for (int round = 0; round < 10; round++)
            made_sample(&dir, k ? other.id : base.id, round, k ? 1200 : 1000, 0);
    struct run r = made_read(&dir);
    const struct comparisons c = by_backend(&r);
    cr_expect(c.n == 1 && c.v[0].change.basis == BASIS_MOMENTS);
    HAS(c.v[0].note, "not measured together");
}

Test(compare, axis_that_cannot_tell_rows_apart)
{
    const struct made_case twin = {"v", "one", "4444", 128, 1000};
    struct rundir dir;
    struct comparisons c = {0};

    write_cases(&dir, CASES(&base, &twin), 0);
    struct run r = made_read(&dir);
    REFUSED(compare_axis(&c, &r, "backend", "one", 0.02, 1, &failure), E_USAGE,
            "more than one row");
    comparisons_free(&c);
}

/* ---- two runs ------------------------------------------------------------------------------ */

/* A run of `base` and, with other ids, `longer`: its times, arena bytes and machine as given. */
static void make_second(struct rundir *r, double ns, int64_t arena, const char *host)
{
    struct made_case a = base, b = longer;

    b.id = "5555"; /* another build wrote another repro line: only the key columns agree */
    *r = made_open("bbbb");
    made_row(r, &a, host, "ok", "", arena);
    made_row(r, &b, host, "ok", "", arena);
    for (int i = 0; i < 15; i++) {
        made_sample(r, a.id, i, ns, 0);
        made_sample(r, b.id, i, ns, 0);
    }
    made_close(r, host, "Other CPU");
}

static void make_first(struct rundir *r)
{
    write_cases(r, CASES(&base, &longer, &other), 15);
    made_close(r, "host", "CPU");
}

Test(compare, runs_match_by_id_then_by_key)
{
    struct rundir dir[2];

    make_first(&dir[0]);
    make_second(&dir[1], 900, 100, "host");
    const struct comparisons c = of_runs(dir);
    cr_assert_eq(c.n, 2);
    cr_expect(c.unmatched[BEFORE] == 1 && c.unmatched[AFTER] == 0);
    TEXTS({c.v[1].case_id[BEFORE], "3333"}, {c.v[1].case_id[AFTER], "5555"});
    for (int i = 0; i < 2; i++) {
        NUMBERS({c.v[i].change.verdict, VERDICT_FASTER}, {c.v[i].change.basis, BASIS_MOMENTS});
        cr_expect(!c.v[i].changed);
    }
}

Test(compare, exact_numbers)
{
    struct rundir dir[2];

    for (int s = 0; s < 2; s++) {
        dir[s] = made_open("aaaa");
        made_row(&dir[s], &base, "host", "ok", "", s ? 101 : 100);
        for (int i = 0; i < 9; i++)
            made_sample(&dir[s], base.id, i, base.ns, 0);
        made_perplexity(&dir[s], &base, "w1", s ? 1.50009 : 1.5);   /* within 1e-4 */
        made_perplexity(&dir[s], &longer, "w1", s ? 1.50011 : 1.5); /* beyond */
        made_perplexity(&dir[s], &other, s ? "w2" : "w1", 1.5);     /* other weights: no pair */
        made_close(&dir[s], "host", "CPU");
    }
    const struct comparisons c = of_runs(dir);
    cr_assert_eq(c.n, 3);
    cr_expect(c.v[0].changed && strstr(c.v[0].note, "+1 bytes"), "%s", c.v[0].note);
    cr_expect_eq(c.v[0].change.verdict, VERDICT_SAME);
    cr_expect(c.v[1].exact && !c.v[1].changed);
    cr_expect(c.v[2].exact && c.v[2].changed && strstr(c.v[2].note, "NLL"), "%s", c.v[2].note);
    cr_expect(c.unmatched[BEFORE] == 1 && c.unmatched[AFTER] == 1);
}

/* An NLL that exists on one side only counts as changed. */
Test(compare, exact_rule)
{
    struct comparison c = {.arena_bytes = {5, NAN}, .nll = {NAN, NAN}};

    comparison_exact(&c);
    cr_expect(!c.changed, "unknown is not changed");
    cr_expect_eq(comparison_exact_verdict(&c), VERDICT_UNCLEAR, "nor is it the same");
    c.nll[BEFORE] = 1;
    comparison_exact(&c);
    cr_expect(c.changed);
    c.nll[AFTER] = 1;
    cr_expect_eq(comparison_exact_verdict(&c), VERDICT_SAME);
    c = (struct comparison){.nll = {INFINITY, INFINITY}};
    comparison_exact(&c);
    cr_expect(c.changed || comparison_exact_verdict(&c) == VERDICT_UNCLEAR);
}

Test(compare, failed_rows_have_no_times)
{
    struct rundir dir[2];

    for (int s = 0; s < 2; s++) {
        dir[s] = made_open("aaaa");
        made_row(&dir[s], &base, "host", s ? "failed" : "ok", s ? "killed by SIGSEGV" : "", 1);
        made_sample(&dir[s], base.id, 0, 1000, 0);
        made_close(&dir[s], "host", "CPU");
    }
    const struct comparisons c = of_runs(dir);
    cr_assert_eq(c.n, 1);
    cr_expect(c.v[0].change.n == 0 && c.v[0].change.verdict == VERDICT_UNCLEAR);
    HAS(c.v[0].note, "killed by SIGSEGV");
}

/* ---- strict readers ------------------------------------------------------------------------ */

/* Replace `from` by `to` in a file of the run, or empty it where from is NULL. */
static void damage(const char *dir, const char *file, const char *from, const char *to)
{
    const char *const path = kept_text("%s/%s", dir, file);
    struct bytes b = must_load(path);
    char *text = room(1, b.n + 256);
    char *at = from ? strstr(b.data, from) : b.data;
    cr_assert(at, "%s has no %s", file, from);
    if (from)
        snprintf(text, b.n + 256, "%.*s%s%s", (int)(at - b.data), b.data, to, at + strlen(from));
    cr_assert_eq(file_replace(path, text, strlen(text), NULL), OK);
}

Test(compare, refuses)
{
    static const struct {
        const char *file, *from, *to, *says;
    } faults[] = {
        {"latency.csv", "bench-latency/2", "bench-latency/3", "this program reads 2.x"},
        {"latency.csv", ",median_ns", ",median_xs", "no column median_ns"},
        {"latency.csv", ",1000,", ",nan,", "is not a number"},
        {"latency.csv", ",1000,", ",1000,7,", "fields, header has"},
        {"memory.csv", ",100,", ",1e2,", "is not a whole number"},
        {"samples.csv", ",10000,", ",inf,", "is not a number"},
        {"samples.csv", ",10000,", ",,", "has no time"},
        {"samples.csv", ",9000,10,", ",9000,0,", "column calls: \"0\""},
        {"samples.csv", ",10000,", ",0,", "has no time"},
        {"latency.csv", ",1000,", ",-1000,", "column median_ns: \"-1000\""},
        {"latency.csv", "bench-latency/2", "bench-latency/1", "  -> measure again"},
        {"latency.csv", NULL, NULL, "is empty"},
        {"samples.csv", NULL, NULL, "is empty"},
    };

    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        struct rundir dir;
        struct run r;
        make_first(&dir);
        damage(dir.path, faults[i].file, faults[i].from, faults[i].to);
        REFUSED(run_read(&r, dir.path, &failure), E_IO, faults[i].says);
        bench_exits(7, faults[i].says, "compare %s %s", dir.path, dir.path);
        folder_remove(), folder_make();
    }
}

/* ---- what a user meets --------------------------------------------------------------------- */

Test(compare, command)
{
    struct rundir dir[3];

    make_first(&dir[0]);
    make_second(&dir[1], 1300, 100, "host");
    make_second(&dir[2], 1300, 101, "elsewhere");
    struct ran r = bench_exits(0, "unpaired", "compare %s %s", dir[0].path, dir[1].path);
    HAS(r.out.data, "slower", "30.000");
    r = must_bench("compare %s %s --format table", dir[0].path, dir[1].path);
    HAS(r.out.data, "+30.0 % [+30.0 +30.0] slower");
    r = bench_exits(4, "another machine (CPU", "compare %s %s", dir[0].path, dir[2].path);
    cr_expect(strstr(r.out.data, "other machine") && !strstr(r.out.data, "slower"), "%s",
              r.out.data);
    cr_expect(strstr(r.out.data, "arena"), "bytes are compared all the same: %s", r.out.data);
    bench_exits(2, NULL, "compare %s", dir[0].path);
    bench_exits(7, NULL, "compare %s nowhere", dir[0].path);
    bench_exits(2, NULL, "compare --base one %s", dir[0].path);
}

Test(compare, unchecked_rows_are_refused)
{
    struct rundir dir = made_open("aaaa");
    made_row(&dir, &base, "host", "ok", "unchecked few", 1);
    made_sample(&dir, base.id, 0, 1000, 0);
    made_close(&dir, "host", "CPU");
    bench_exits(4, "1 unchecked row", "compare --axis backend %s", dir.path);
}

/* What `auto` means for a context has changed: rows of both meanings are other cases. */
Test(compare, contexts_held_otherwise)
{
    static const char sweep[] = TINY "--variant xl,gla --backend ref --seq 8 --mem 0,8 ";

    must_bench("%s --mem-kind hidden,state --out old", sweep);
    must_bench("%s --out new", sweep);
    struct ran r = bench_exits(0, "note: 4 rows without a partner (2 old, 2 new)",
                               "compare old/latest new/latest");
    expect_said(&r,
                "note: 2 cases differ only in where the context is, such as hidden in old, kv in "
                "new  -> measure with --mem-kind hidden");
    must_bench(TINY "--variant xl --backend ref --seq 4 --mem 8 --mem-kind hidden,kv --out both");
    must_bench(TINY "--variant xl --backend ref --seq 4 --mem 8 --out one");
    r = run_bench("compare both/latest one/latest"); /* kv has its partner */
    expect_said(&r, "note: 1 row without a partner (1 old, 0 new)");
    cr_expect_null(strstr(r.err.data, "where the context is"), "%s", r.err.data);
    r = run_bench("compare new/latest new/latest");
    cr_expect_null(strstr(r.err.data, "where the context is"), "%s", r.err.data);
    r = run_bench("history old/latest new/latest --filter variant:xl");
    HAS(r.err.data, "some differ only in mem_kind  -> measure with one --mem-kind");
}

Test(compare, nothing_in_common)
{
    struct rundir dir[2];

    for (int s = 0; s < 2; s++) {
        write_cases(&dir[s], CASES(s ? &base : &longer), 1);
        made_close(&dir[s], "host", "CPU");
    }
    bench_exits(77, NULL, "compare %s %s", dir[0].path, dir[1].path);
}

/* On a terminal: no line is too wide, a reason stands once, and what is said by pairs says so. */
static void compare_backends(void *arg)
{
    const char *const bench = getenv("BENCH");

    execl(bench, bench, "compare", "--axis", "backend", "--base", "ref", "r/latest", (char *)NULL);
    _exit(99);
}

Test(compare, fits_the_terminal)
{
    static const int widths[] = {80, 100, 200};
    struct ran r = run_bench(TINY "--variant xl,shaw --backend ref,openblas," SIMD
                                  " --workload attn,layer --seq 8,12 --mem 8");

    if (r.code == 6)
        cr_skip_test("a backend is not usable here");
    expect_exit(&r, 0);
    for (size_t i = 0; i < ARRAY_LEN(widths); i++) {
        struct view v;
        watch(&v, ON_STDOUT, widths[i], compare_backends, NULL);
        cr_expect_eq(v.code, 0, "%s%s", v.screen, v.file);
        cr_expect_leq(widest(v.screen), widths[i], "%s", v.screen);
        cr_expect_leq(count_in(v.screen, "most samples were preempted"), 1, "%s", v.screen);
        cr_expect_eq(count_in(v.screen, "geometric mean of 8: "), 2, "%s", v.screen);
        cr_expect_eq(count_in(v.screen, "the median over pairs"), 1, "%s", v.screen);
    }
}

/* A real run: one axis, in every format, all rows or some. */
Test(compare, of_a_sweep)
{
    struct ran table, md, tex;

    must_bench(TINY "--variant xl,shaw --backend ref --seq 8 --mem 8");
    EACH_TEXT (form, "table", "csv", "jsonl", "json", "md", "tex") {
        struct ran r = must_bench("compare --axis variant --base xl r/latest --format %s", form);
        cr_expect(strstr(r.out.data, "shaw"), "%s: %s", form, r.out.data);
    }
    must_bench(TINY "--variant xl,shaw --backend ref --seq 8,12 --mem 8");
    table = run_bench("compare --axis variant --base xl r/latest --format table");
    md = run_bench("compare --axis variant --base xl r/latest --format md");
    tex = run_bench("compare --axis variant --base xl r/latest --format tex");
    cr_expect_eq(expect_pasted(table.out.data, md.out.data, tex.out.data), 3, "%s", md.out.data);
    HAS(md.out.data, "geometric mean of 2");
    struct ran r = must_bench("compare --axis variant --base xl r/latest --filter 'seq>8'");
    cr_expect(strstr(r.out.data, "seq=12") && !strstr(r.out.data, "seq=8"), "%s", r.out.data);
    bench_exits(2, NULL, "compare r/latest r/latest --filter backend:nope");
    r = run_bench("compare --axis variant --base xl r/latest --format table");
    cr_expect(strstr(r.out.data, "geometric mean of 2: shaw") && !strstr(r.err.data, "mean"),
              "the conclusion stands below its table: %s%s", r.out.data, r.err.data);
}

/* One run: with the newest before it that has all its cases; a word that is no run is named. */
Test(compare, with_the_run_before)
{
    static const struct {
        const char *name;
        bool longer; /* has a case more */
    } runs[] = {{"1", true}, {"2", true}, {"3", false}, {"4", true}, {"5", false}};

    for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
        made_cases(runs[i].name, "CPU", (const struct made_case[]){base, longer},
                   1 + runs[i].longer);
    }
    shell_exits(0, "note: compared with ./2, the run before that has its cases",
                "ln -sf 4 latest; \"$BENCH\" compare latest --format csv");
    struct ran r = run_bench("compare ./5/ --format csv"); /* a run may have more cases */
    expect_said(&r, "note: compared with ./4, ");
    bench_exits(2, "no run before ./1 has its cases  -> bench compare OLD ./1", "compare ./1");
    bench_exits(7, "\"nope\" is neither a run's folder nor a baseline", "compare nope");
    r = run_bench("compare 3 --axis backend");
    cr_expect_null(strstr(r.err.data, "compared with"), "%s", r.err.data);
}

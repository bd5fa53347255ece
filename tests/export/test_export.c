/* SPDX-License-Identifier: MIT
 *
 * A run with known rows in each format: what its reader looks for is there, with the right numbers
 * and units, and nothing has a time that was not measured. */
#include "tests/support/json.h"
#include "tests/support/run_folder.h"
#include "tests/support/words.h"
#include "tests/table/must_rows.h"
#include <signal.h>

TestSuite(export, .init = folder_make, .fini = folder_remove, .timeout = 240);

static const struct made_case fast = {"xl", "avx2", "00000000000000aa", 8, 1500},
                              slow = {"xl", "ref", "00000000000000bb", 8, 2500000},
                              twin = {"xl", "ref", "00000000000000cc", 8, 5000},
                              bad = {"shaw", "ref", "00000000000000dd", 8, NAN},
                              left = {"shaw", "avx2", "00000000000000ee", 8, NAN};

static void make_run(struct rundir *dir)
{
    *dir = made_open("abcdef1");
    made_row(dir, &fast, "host", "ok", "", 4096);
    made_row(dir, &slow, "host", "ok", "", 100);
    made_row(dir, &twin, "host", "ok", "", 200); /* differs in what its label does not say */
    made_row(dir, &bad, "host", "wrong", "max_rel_err 1 > \"0.1\" & more", 1);
    made_row(dir, &left, "host", "skipped", "memory", 1);
    made_perplexity(dir, &fast, "weights", 0.5);
    made_close(dir, "host", "CPU \"quoted\"");
}

static struct ran exported(const char *to)
{
    struct rundir dir;

    make_run(&dir);
    struct ran r = must_bench("export --to %s %s", to, dir.path);
    cr_expect_eq(r.err.n, 0, "%s", r.err.data);
    return r;
}

#define FAST "xl layer seq=8 mem=0 avx2"
#define SLOW "xl layer seq=8 mem=0 ref 00000000000000bb"
#define TWIN "xl layer seq=8 mem=0 ref 00000000000000cc"
#define BAD "shaw layer seq=8 mem=0 ref"

Test(export, one_document)
{
    struct ran r = exported("json");
    json_t *const doc = json_of(r.out.data);
    const json_t *const rows = json_object_get(doc, "benchmarks");
    static const char *const names[] = {FAST, SLOW, TWIN, BAD, "shaw layer seq=8 mem=0 avx2"};

    cr_expect_str_eq(text_at(json_object_get(doc, "context"), "cpu_model"), "CPU \"quoted\"");
    cr_assert_eq(json_array_size(rows), ARRAY_LEN(names));
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const json_t *const row = json_array_get(rows, i);
        TEXTS({text_at(row, "name"), names[i]}, {text_at(row, "time_unit"), "ns"});
        cr_expect_eq(json_is_true(json_object_get(row, "error_occurred")), i > 2);
        if (i > 2)
            cr_expect(json_is_null(json_object_get(row, "real_time")));
        else
            cr_expect_eq(number_at(row, "real_time"), number_at(row, "median_ns"));
    }
    NUMBERS({number_at(json_array_get(rows, 0), "real_time"), 1500},
            {json_array_size(json_object_get(doc, "memory")), 5},
            {json_array_size(json_object_get(doc, "perplexity")), 1});
}

Test(export, openmetrics)
{
    struct ran r = exported("openmetrics");
    const char *const out = r.out.data;

    HAS(out, "# TYPE bench_median_seconds gauge\n", "# UNIT bench_median_seconds seconds\n",
        "\nbench_median_seconds{case=\"" FAST "\",variant=\"xl\",backend=\"avx2\",", "} 1.5e-06\n",
        "} 0.0025\n", "} 4096\n");
    cr_expect_str_eq(out + r.out.n - 6, "# EOF\n");
    const char *const ends = strstr(out, "# TYPE bench_row_ok gauge\n");
    const char *const wrong = strstr(out, "case=\"" BAD "\"");
    cr_assert(ends && wrong, "%s", out);
    cr_expect(wrong > ends && strstr(wrong, "} 0\n") < strchr(wrong, '\n'), "%s", wrong);
    cr_expect_eq(strstr(out, "shaw"), wrong + strlen("case=\""), "%s", out);
    cr_expect_eq(count_in(ends, "} 1\n"), 4, "three cases and a score: %s", ends);
    cr_expect_eq(count_in(ends, "} 0\n"), 1, "what was skipped has neither: %s", ends);
    HAS(ends, "\nbench_run_ended 1\n");
    cr_expect(!strstr(out, "nan"), "%s", out);
}

Test(export, junit)
{
    struct ran r = exported("junit");
    const char *const out = r.out.data;

    HAS(out, "tests=\"6\" failures=\"1\" errors=\"0\" skipped=\"1\"");
    cr_expect_eq(count_in(out, "<testcase "), 6);
    /* closed wherever it is opened */
    cr_expect_eq(count_in(out, "</testcase>"), 2);
    HAS(out, "<failure message=\"max_rel_err 1 &gt; &quot;0.1&quot; &amp; more\"/>",
        "name=\"" FAST "\" time=\"0.000001500\"/>");
}

static void expect_last_line(const struct ran *r, const char *line)
{
    const size_t n = strlen(line);

    cr_assert_geq(r->out.n, n, "%s", r->out.data);
    cr_expect_str_eq(r->out.data + r->out.n - n, line);
}

/* Of a command that measures: every line but the last is one number of a row. */
Test(export, figures_of_merit_of_a_sweep)
{
    struct ran r = must_bench("--variant xl,vanilla --backend ref --workload attn --seq 4 --mem 0 "
                              "--ckpt none -q --format fom " TINY);
    const struct latency_row *const row = must_rows("r/latest", TABLE_LATENCY, 2);

    for (int i = 0; i < 2; i++) {
        const char *const line =
            kept_text("fom %s time %.9g ns\n", row[i].case_id, row[i].median_ns);
        cr_expect(strstr(r.out.data, line), "no %s in %s", line, r.out.data);
    }
    HAS(r.out.data, ": xl attn seq=4 mem=0 ref\n");
    cr_expect_eq(count_in(r.out.data, "\n"), 7, "a name, a time, an arena of each: %s", r.out.data);
    expect_last_line(&r, "bench: all ok\n");
    EACH_TEXT (refused, "list cases --format fom", "--dry-run --format fom",
               "--format fom --columns variant", "plot --format fom")
        bench_exits(2, NULL, "%s", refused);
}

Test(export, figures_of_merit)
{
    struct ran r = exported("fom");

    HAS(r.out.data, "fom 00000000000000aa time 1500 ns\n",
        "fom 00000000000000aa arena 4096 bytes\n", " perplexity ");
    cr_expect_eq(count_in(r.out.data, "fom "), 7);
    expect_last_line(&r, "bench: 1 wrong, 0 failed\n"); /* what was skipped is neither */
}

/* A run of rows with these statuses that ended with this code says so. */
static void expect_verdict(const char *const status[], int64_t exit_code, const char *line)
{
    struct env_row env = env_row_empty();

    struct rundir dir = made_open("abcdef1");
    for (int i = 0; status[i]; i++) {
        const char *const id = kept_text("%016x", 0xaa + i);
        made_row(&dir, &(struct made_case){"xl", "ref", id, 8, 1500}, "host", status[i], "", 1);
    }
    MUST(rundir_close(&dir, &failure));
    env.exit_code = exit_code;
    MUST(rundir_env(&dir, &env, &failure));
    struct ran r = must_bench("export --to fom %s", dir.path);
    expect_last_line(&r, line);
    r = must_bench("export --to junit %s", dir.path);
    cr_expect_eq(strstr(r.out.data, "failures=\"0\" errors=\"0\"") != NULL,
                 strcmp(line, "bench: all ok\n") == 0, "%s of %s", r.out.data, line);
    const char *const tests = kept_text("tests=\"%d\"", count_in(r.out.data, "<testcase "));
    HAS(r.out.data, tests);
    r = run_bench("export --to openmetrics %s", dir.path);
    cr_expect_eq(strstr(r.out.data, "\nbench_run_ended 1\n") != NULL, !strstr(line, "not finished"),
                 "%s of %s", r.out.data, line);
}

/* ---- scores, and jobs of studies ------------------------------------------------------------- */

/* One row of perplexity.csv or study.csv in a run that ended with this code. */
static void make_one(struct rundir *dir, enum table_id table, const char *status, const char *role,
                     int64_t exit_code)
{
    struct env_row env = env_row_empty();
    struct perplexity_row score = perplexity_row_empty();
    struct study_row job = study_row_empty();

    *dir = made_open("abcdef1");
    if (table == TABLE_PERPLEXITY) {
        struct key_row k = made_key(dir, &fast, "host");
        text_put(k.status, TEXT_SIZE, status);
        text_put(k.status_detail, LINE_SIZE, "a \"detail\" < \303\251 & \\");
        text_put(k.repro, LINE_SIZE, "eval --ckpt \"\303\251 & <\\.safetensors\"");
        row_set_key(&tables[table], &score, &k);
        score.ppl = strcmp(status, "ok") == 0 ? 2 : NAN;
        made_write(dir, table, &score);
    } else {
        text_put(job.run_id, TEXT_SIZE, dir->run_id);
        text_put(job.case_id, TEXT_SIZE, "00000000000000ff");
        text_put(job.status, TEXT_SIZE, status);
        text_put(job.status_detail, LINE_SIZE, "a \"detail\" < \303\251 & \\");
        text_put(job.role, TEXT_SIZE, role);
        text_put(job.contender, TEXT_SIZE, "\"\303\251\"");
        text_put(job.size, TEXT_SIZE, "s");
        text_put(job.corpus, LINE_SIZE, "a&b");
        text_put(job.variant, TEXT_SIZE, "xl");
        job.seed = 3;
        job.lr = 0.5;
        job.test_nats = strcmp(status, "ok") == 0 ? 2 : NAN;
        const char *const path = kept_text("%s/%s", dir->path, tables[table].file);
        MUST(table_replace(&tables[table], path, &job, 1, &failure));
    }
    MUST(rundir_close(dir, &failure));
    env.exit_code = exit_code;
    MUST(rundir_env(dir, &env, &failure));
}

static struct ran of_one(const struct rundir *dir, const char *to)
{
    return must_bench("export --to %s %s", to, dir->path);
}

/* Each row of a score or a job is in each format what it ended as; a run of ok rows alone that ended
 * is finished. */
Test(export, rows_that_are_no_times)
{
    static const struct {
        enum table_id table;
        const char *status, *role, *element; /* of JUnit */
        int code, ok;                        /* -1: neither */
        const char *verdict;
    } rows[] = {
        {TABLE_PERPLEXITY, "ok", "", NULL, 0, 1, "all ok"},
        {TABLE_PERPLEXITY, "skipped", "", "skipped", 77, -1, "all ok"},
        {TABLE_PERPLEXITY, "wrong", "", "failure", 5, 0, "1 wrong, 0 failed"},
        {TABLE_PERPLEXITY, "failed", "", "error", 7, 0, "0 wrong, 1 failed"},
        {TABLE_PERPLEXITY, "timeout", "", "error", 1, 0, "0 wrong, 1 failed"},
        {TABLE_STUDY, "ok", "final", NULL, 0, 1, "all ok"},
        {TABLE_STUDY, "ok", "tune", NULL, 0, 1, "all ok"},
        {TABLE_STUDY, "skipped", "final", "skipped", 77, -1, "all ok"},
        {TABLE_STUDY, "wrong", "tune", "skipped", 0, -1, "all ok"}, /* a rate that does not work */
        {TABLE_STUDY, "wrong", "final", "failure", 1, 0, "1 wrong, 0 failed"},
        {TABLE_STUDY, "failed", "tune", "error", 1, 0, "0 wrong, 1 failed"},
        {TABLE_STUDY, "failed", "final", "error", 5, 0, "0 wrong, 1 failed"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const bool study = rows[i].table == TABLE_STUDY, number = strcmp(rows[i].status, "ok") == 0;
        const char *const element = rows[i].element;
        struct rundir dir;
        char text[160];
        make_one(&dir, rows[i].table, rows[i].status, rows[i].role, rows[i].code);

        struct ran r = of_one(&dir, "fom");
        snprintf(text, sizeof(text), "bench: %s\n", rows[i].verdict);
        expect_last_line(&r, text);
        cr_expect_eq(count_in(r.out.data, "fom "), number, "%s", r.out.data);

        r = of_one(&dir, "junit");
        snprintf(text, sizeof(text), "tests=\"1\" failures=\"%d\" errors=\"%d\" skipped=\"%d\"",
                 element && strcmp(element, "failure") == 0,
                 element && strcmp(element, "error") == 0,
                 element && strcmp(element, "skipped") == 0);
        cr_expect(strstr(r.out.data, text), "%zu: no %s in %s", i, text, r.out.data);
        snprintf(text, sizeof(text),
                 "<%s message=\"a &quot;detail&quot; &lt; \303\251 &amp; \\\"/></testcase>",
                 element ? element : "");
        cr_expect_eq(strstr(r.out.data, text) != NULL, element != NULL, "%s", r.out.data);
        HAS(r.out.data, dir.run_id,
            study ? "\"bench.study.xl\" name=\"&quot;\303\251&quot; s a&amp;b "
                  : "\"bench.perplexity.xl\" name=\"eval --ckpt &quot;\303\251 &amp; &lt;",
            study ? " seed=3 lr=0.5\"" : ".safetensors&quot;\"");

        r = of_one(&dir, "openmetrics");
        snprintf(text, sizeof(text), "bench_row_ok{case=\"%s",
                 study ? "\\\"\303\251\\\" s a&b "
                       : "eval --ckpt \\\"\303\251 & <\\\\.safetensors");
        const char *const line = strstr(r.out.data, text);
        cr_expect_eq(line != NULL, rows[i].ok >= 0, "%zu: no %s in %s", i, text, r.out.data);
        if (line)
            cr_expect_eq(strcspn(line, "\n"),
                         (size_t)(strstr(line, rows[i].ok ? "} 1" : "} 0") - line) + 3);
        HAS(r.out.data, "\nbench_run_ended 1\n# EOF\n");

        r = of_one(&dir, "json");
        json_t *const doc = json_of(r.out.data);
        const json_t *const list = json_object_get(doc, study ? "study" : "perplexity");
        cr_expect_eq(json_array_size(list), 1);
        cr_expect_str_eq(text_at(json_array_get(list, 0), "status"), rows[i].status);
    }
}

Test(export, all_ok_only_if_every_planned_case_is)
{
    static const struct {
        const char *status[3];
        int64_t exit_code;
        const char *line;
    } runs[] = {
        {{"ok", "skipped"}, 0, "bench: all ok\n"},
        {{"ok", "ok"}, 4, "bench: all ok\n"},
        {{"skipped"}, 77, "bench: all ok\n"},
        {{"ok", "wrong"}, 5, "bench: 1 wrong, 0 failed\n"},
        {{"ok", "suspect"}, 4, "bench: 0 wrong, 1 failed\n"},
        {{"timeout", "failed"}, 1, "bench: 0 wrong, 2 failed\n"},
        {{NULL}, 143, "bench: 0 wrong, 0 failed, not finished\n"},
        {{NULL}, 0, "bench: 0 wrong, 0 failed, not finished\n"},
        {{"ok"}, 130, "bench: 0 wrong, 0 failed, not finished\n"},
        {{"ok"}, I64_EMPTY, "bench: 0 wrong, 0 failed, not finished\n"}, /* killed */
        {{"ok"}, 1, "bench: 0 wrong, 0 failed, not finished\n"}, /* no row says what failed */
        {{"ok"}, 7, "bench: 0 wrong, 0 failed, not finished\n"}, /* a full disk */
        {{"ok", "interrupted"}, 0, "bench: 0 wrong, 0 failed, not finished\n"},
        {{"wrong", "interrupted"}, 143, "bench: 1 wrong, 0 failed, not finished\n"},
    };

    for (size_t i = 0; i < ARRAY_LEN(runs); i++)
        expect_verdict(runs[i].status, runs[i].exit_code, runs[i].line);
}

/* A score that went wrong is no less bad than a time that did. */
Test(export, a_bad_row_of_either_table)
{
    static const struct {
        const char *status, *line;
    } cases[] = {{"wrong", "bench: 1 wrong, 0 failed\n"},
                 {"failed", "bench: 0 wrong, 1 failed\n"},
                 {"timeout", "bench: 0 wrong, 1 failed\n"},
                 {"interrupted", "bench: 0 wrong, 0 failed, not finished\n"},
                 {"skipped", "bench: all ok\n"}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (int of_score = 0; of_score < 2; of_score++) {
            struct rundir dir = made_open("abcdef1");
            struct key_row k = made_key(&dir, &fast, "host");
            text_put(k.status, TEXT_SIZE, of_score ? "ok" : cases[i].status);
            struct latency_row row = ROW_OF(latency, LATENCY, &k);
            text_put(k.status, TEXT_SIZE, of_score ? cases[i].status : "ok");
            struct perplexity_row ppl = ROW_OF(perplexity, PERPLEXITY, &k);
            made_write(&dir, TABLE_LATENCY, &row);
            made_write(&dir, TABLE_PERPLEXITY, &ppl);
            made_close(&dir, "host", "CPU");
            struct ran r = must_bench("export --to fom %s", dir.path);
            expect_last_line(&r, cases[i].line);
        }
}

/* Ended by a scheduler, and with a row cut off by hand. */
Test(export, figures_of_merit_of_a_part)
{
    struct program p = start_bench(
        "--variant xl --backend ref --workload attn --seq 4..64 --mem 0 --d-model 32 --heads 2 "
        "--threads 1 --max-time 20 --target-ci 0 --ckpt none --raw none --format fom --out r");

    cr_assert(wait_for_text(&p, "case"));
    cr_assert_eq(kill(p.pid, SIGTERM), 0);
    struct ran r = finish_bench(&p);
    expect_exit(&r, 143);
    expect_last_line(&r, ", not finished\n");
    r = must_bench("--variant xl,vanilla --backend ref --workload attn --seq 4 --mem 0 --raw none "
                   "-q --format fom " TINY);
    cr_expect_eq(count_in(r.out.data, " time "), 2, "without raw samples: %s", r.out.data);
    expect_last_line(&r, "bench: all ok\n");
    must_shell("sed -i '$d' r/latest/latency.csv");
    r = must_bench("export --to fom r/latest");
    expect_last_line(&r, "bench: 0 wrong, 0 failed, not finished\n");
}

/* What a run counted is not known: no verdict in its favour. */
Test(export, of_a_run_whose_json_is_damaged)
{
    EACH_TEXT (damage, "printf '[[' >run.json", "rm run.json && mkfifo run.json") {
        struct rundir dir = made_open("abcdef1");
        made_row(&dir, &fast, "host", "ok", "", 4096);
        made_close(&dir, "host", "CPU");
        struct ran r = run_bench("export --to fom %s", dir.path);
        expect_last_line(&r, "bench: all ok\n");
        must_shell("cd %s && %s", dir.path, damage);
        r = run_bench("export --to fom %s", dir.path);
        expect_last_line(&r, "bench: 0 wrong, 0 failed, not finished\n");
    }
}

/* As the runs that stand in results/reference. */
Test(export, of_a_run_without_perplexities)
{
    struct rundir dir;

    make_run(&dir);
    must_shell("cd %s && rm perplexity.csv samples.csv", dir.path);
    must_bench("export --to json %s", dir.path);
    struct ran r =
        bench_exits(0, "has no raw samples", "compare --format csv %s %s", dir.path, dir.path);
    HAS(r.out.data, ",unclear,");
}

Test(export, of_some_rows_of_a_run)
{
    struct rundir dir;

    make_run(&dir);
    struct ran r = must_bench("export --to fom --filter backend:avx2 %s", dir.path);
    cr_expect(strstr(r.out.data, fast.id) && !strstr(r.out.data, slow.id), "%s", r.out.data);
    bench_exits(2, NULL, "export --to fom --filter backend:nope %s", dir.path);
    static const char *const wrong[] = {"gitlab", "bencher", "github-action-benchmark"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        bench_exits(2, i > 0 ? "jq" : "json", "export --to %s %s", wrong[i], dir.path);
    bench_exits(7, NULL, "export nowhere");
    bench_exits(7, NULL, "export --out none");
}

/* SPDX-License-Identifier: MIT
 *
 * A case over several runs. */
#include "tests/support/figure_rows.h"
#include "tests/support/normal.h"
#include "tests/support/program.h"
#include "tests/support/words.h"

TestSuite(plot_history, .init = folder_make, .fini = folder_remove, .timeout = 240);

enum { RUNS = 3 };

/* Run i is over, and was made on this day. */
static void made_on(struct rundir *r, int i, int day, const char *cpu)
{
    struct env_row env = env_row_empty();

    snprintf(env.started_at_utc, TEXT_SIZE, "2026-11-%02dT10:00:00Z", day);
    snprintf(env.git_commit, TEXT_SIZE, "commit%d", i);
    text_put(env.cpu_model, LINE_SIZE, cpu);
    MUST(rundir_env(r, &env, &failure));
    MUST(rundir_close(r, &failure));
}

/* Kept until the test ends. */
static void read_run(struct plot_data *run, const char *path)
{
    MUST(plot_read(run, path, &failure));
    kept_copy(run, sizeof(*run));
}

static char *steps_of(const struct plot_data *d, int *slower)
{
    FILE *const f = text_begin();

    *slower = history_steps(f, d);
    return text_end(f);
}

/* Run i was made on day `day[i]`: a case that all runs have, of 100 * day ns, and one of its own.
 */
static void make_runs(struct plot_data run[RUNS], const int day[RUNS])
{
    for (int i = 0; i < RUNS; i++) {
        struct rundir r = made_open(i == 0 ? "aaaa" : i == 1 ? "bbbb" : "cccc");
        for (int own = 0; own < 2; own++) {
            const struct key_row k = key_of(&r, variants[0]->name, "one", own ? 64 + i : 32, 0);
            put_latency(&r, &k, 100.0 * day[i], 1, 1);
        }
        made_on(&r, i, day[i], i == 2 ? "Other CPU" : "Some CPU");
        read_run(&run[i], r.path);
    }
}

Test(plot_history, runs_are_in_order_of_date)
{
    static const int day[RUNS] = {12, 10, 11};
    struct plot_data run[RUNS], d = {.runs = run, .n_runs = RUNS};
    struct plot p;

    make_runs(run, day);
    MUST(plot_make(&p, plot_figure("history"), &d, &failure));
    cr_assert_eq(p.columns.n, 1, "only one case is in several runs");
    cr_assert_eq(p.n, RUNS);
    cr_assert_eq(p.series.n, 2, "machines are not compared");
    for (int i = 0; i < p.n; i++) {
        const struct plot_point *const a = &p.point[i];
        cr_expect_float_eq(a->y, 1000 + 100 * a->x, 1e-9);
        cr_expect_float_eq(a->low, 0.9 * a->y, 1e-9);
        const char *const commit = kept_text("commit%d", a->x == 0 ? 1 : a->x == 1 ? 2 : 0);
        HAS(a->label, commit);
    }
    plot_free(&p);
}

/* The case that all runs have, on each machine: its times under the commits, by date. */
Test(plot_history, as_a_table)
{
    static const int day[RUNS] = {12, 10, 11};
    struct plot_data run[RUNS], d = {.runs = run, .n_runs = RUNS};

    make_runs(run, day);
    for (size_t i = 0; i < run[2].table[TABLE_LATENCY].n; i++)
        text_put(((struct latency_row *)run[2].table[TABLE_LATENCY].row)[i].host_id, TEXT_SIZE,
                 "another");
    char *const out = PRINTED(f, MUST(history_table(f, &d, FORMAT_MD, &failure)));
    HAS(out, "| case | machine | 11-10 commit1 | 11-11 commit2 | 11-12 commit0 |",
        " | Some CPU | 1.00 us |  | 1.20 us |\n", " | Other CPU |  | 1.10 us |  |\n");
    cr_expect_eq(count_in(out, "\n"), 4, "%s", out);
    d.n_runs = 1;
    cr_expect_eq(history_table(stdout, &d, FORMAT_MD, &failure), E_USAGE);
}

/* A single run has none, and is not asked for one. */
Test(plot_history, is_of_several_runs)
{
    const struct names all = {0};

    cr_expect_not(plot_is_wanted(plot_figure("history"), &all));
    cr_expect(plot_is_wanted(plot_figure("latency-seq"), &all));
    struct rundir r = made_open("aaaa");
    struct plot p = plot_of(&r, "history");
    cr_expect_eq(p.n, 0);
    cr_expect_gt(strlen(p.why), 10);
}

/* ---- steps --------------------------------------------------------------------------------- */

enum { DAYS = 12, OWN = DAYS / 2 };

/* A case on this host, on day i + 1. */
static void make_day(struct plot_data *run, int i, const char *host, double ns)
{
    struct rundir r = made_open(kept_text("aaa%d", i));
    struct key_row k = key_of(&r, variants[0]->name, "one", 32, 0);
    text_put(k.host_id, TEXT_SIZE, host);
    put_latency(&r, &k, ns, 1, 1);
    made_on(&r, i, i + 1, "");
    read_run(run, r.path);
}

/* A case on two machines, day by day in turns; `ns` of the first one. */
static void make_days(struct plot_data run[DAYS], const double ns[OWN])
{
    for (int i = 0; i < DAYS; i++)
        make_day(&run[i], i, i % 2 ? "host1" : "host0", i % 2 ? 5000 : ns[i / 2]);
}

static void expect_steps(const double ns[OWN], const char *part, int slower)
{
    static struct plot_data run[DAYS];
    const struct plot_data d = {.runs = run, .n_runs = DAYS};
    int count;

    make_days(run, ns);
    const char *const text = steps_of(&d, &count);
    cr_expect(strstr(text, part), "no \"%s\" in: %s", part, text);
    cr_expect_eq(count, slower, "%s", text);
    folder_remove(); /* the next history has the same names */
    folder_make();
}

/* 1000 to 1100 ns from the fourth run of the machine on; others have runs in between. */
Test(plot_history, steps_are_named)
{
    expect_steps((const double[]){1000, 1001, 999, 1100, 1101, 1099},
                 "takes +10.0 % [+9.8 +10.2] from commit6 (2026-11-07) on, after commit4 "
                 "(2026-11-05)\n",
                 1);
    expect_steps((const double[]){1100, 1101, 1099, 1000, 1001, 999}, "takes -9.1 % [", 0);
    expect_steps((const double[]){1000, 1001, 999, 1000, 1001, 1100},
                 "(2026-11-09); seen in 1 run  -> measure it again\n", 0);
    expect_steps((const double[]){1000, 1040, 980, 1010, 960, 1020}, "steps: none shown\n", 0);
}

/* Is the case slower after all n runs, one a day? */
static int slower_after(const double *ns, int n)
{
    static struct plot_data run[28];
    const struct plot_data d = {.runs = run, .n_runs = n};
    int count;

    for (int i = 0; i < n; i++)
        make_day(&run[i], i, "host", ns[i]);
    steps_of(&d, &count);
    folder_remove(); /* the next history has the same names */
    folder_make();
    return count;
}

/* Three levels in every order: what counts is the last step, and that three runs confirm it. */
Test(plot_history, slower_by_the_last_step)
{
    enum { EACH = 9, LEVELS = 3 };
    static const struct {
        int level[LEVELS], last, slower;
    } cases[] = {{{1, 2, 3}, EACH, 1}, {{3, 2, 1}, EACH, 0}, {{1, 3, 2}, EACH, 0},
                 {{2, 1, 3}, EACH, 1}, {{3, 1, 2}, EACH, 1}, {{2, 3, 1}, EACH, 0},
                 {{2, 1, 3}, 3, 1},    {{2, 1, 3}, 2, 0},    {{1, 3, 2}, 2, 0}};

    for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
        double ns[LEVELS * EACH];
        const int n = (LEVELS - 1) * EACH + cases[c].last;
        for (int i = 0; i < n; i++)
            ns[i] = 1000 * cases[c].level[i / EACH] + (i % 2 ? 1 : -1);
        const int got = slower_after(ns, n);
        cr_expect_eq(got, cases[c].slower, "case %zu: %d", c, got);
    }
}

Test(plot_history, steps_need_four_runs)
{
    struct plot_data run[RUNS], d = {.runs = run, .n_runs = RUNS};
    int slower;

    make_runs(run, (const int[RUNS]){1, 2, 3});
    cr_expect_str_eq(steps_of(&d, &slower),
                     "steps: none looked for  -> give 4 runs of a case on one machine\n");
    cr_expect_eq(slower, 0);
}

/* Exit code 3 is asked for with --strict. */
Test(plot_history, a_slower_step_as_exit_code)
{
    static struct plot_data run[DAYS];
    static const char steps[] = "history 2* --format csv --force -o o";

    make_days(run, (const double[]){1000, 1001, 999, 1100, 1101, 1099});
    shell_exits(0, "step: ", "$BENCH %s", steps);
    struct ran r = shell_exits(3, NULL, "$BENCH %s --strict -q", steps);
    cr_expect_eq(r.err.n, 0, "%s", r.err.data);
}

/* ---- many cases ---------------------------------------------------------------------------- */

enum { CASES = 40, WEEK = 8, HISTORIES = 40 };

/* Runs of all cases, in memory: 1 % of noise, and one case `pct` % slower from the middle on. */
static void make_week(struct plot_data run[WEEK], struct env_row env[WEEK], uint64_t stream,
                      double pct)
{
    struct rundir r = {.run_id = "run"};

    for (int i = 0; i < WEEK; i++) {
        struct latency_row *const row = need_room(CASES, sizeof(*row));
        for (int k = 0; k < CASES; k++) {
            const struct key_row key = key_of(&r, variants[0]->name, "one", 32 + k, 0);
            row[k] = latency_row_empty();
            row_set_key(&tables[TABLE_LATENCY], &row[k], &key);
            row[k].median_ns = 1000 * exp(0.01 * normal_at(stream, (uint64_t)(i * CASES + k)));
            if (k == 3 && i >= WEEK / 2)
                row[k].median_ns *= 1 + pct / 100;
        }
        env[i] = env_row_empty();
        snprintf(env[i].started_at_utc, TEXT_SIZE, "2026-11-%02dT10:00:00Z", i + 1);
        snprintf(env[i].git_commit, TEXT_SIZE, "commit%d", i);
        run[i] = (struct plot_data){0};
        run[i].table[TABLE_LATENCY] = (struct rows){.row = row, .n = CASES};
        run[i].table[TABLE_ENV] = (struct rows){.row = &env[i], .n = 1};
    }
}

/* Lines of steps of one week. */
static int count_steps(uint64_t stream, double pct)
{
    static struct plot_data run[WEEK];
    static struct env_row env[WEEK];
    const struct plot_data d = {.runs = run, .n_runs = WEEK};
    int n = 0, slower;

    make_week(run, env, stream, pct);
    const char *const text = steps_of(&d, &slower);
    for (const char *at = text; (at = strstr(at, "step: ")); at++)
        n++;
    cr_expect_eq(strstr(text, "steps: none shown") != NULL, n == 0, "%s", text);
    for (int i = 0; i < WEEK; i++)
        free(run[i].table[TABLE_LATENCY].row);
    return n;
}

/* Forty cases without a step show one in fewer than 5 % of histories: all their places are counted.
 * Of 40 histories that is 2, and 4 standard errors of a binomial are 5.5 more; corrected for one case
 * alone, some 35 would. What is there is found at the same level: a tenth is ten times the noise. */
Test(plot_history, forty_cases_without_a_step)
{
    const uint64_t stream = rng_stream("history.weeks");
    int alarms = 0;

    for (int i = 0; i < HISTORIES; i++)
        alarms += count_steps(stream + (uint64_t)i, 0) > 0;
    cr_expect_leq(alarms, 7);
    cr_expect_eq(count_steps(stream, 10), 1);
}

/* SPDX-License-Identifier: MIT
 *
 * A case over several runs. */
#include "tests/support/figure_rows.h"

TestSuite(plot_history, .init = folder_make, .fini = folder_remove, .timeout = 60);

enum { RUNS = 3 };

/* Run i was made on day `day[i]`: a case that all runs have, of 100 * day ns, and one of its own.
 */
static void make_runs(struct plot_data run[RUNS], const int day[RUNS])
{
    for (int i = 0; i < RUNS; i++) {
        struct env_row env = env_row_empty();
        struct rundir r;
        struct err e;
        made_open(&r, i == 0 ? "aaaa" : i == 1 ? "bbbb" : "cccc");
        for (int own = 0; own < 2; own++) {
            const struct key_row k = key_of(&r, variants[0]->name, "one", own ? 64 + i : 32, 0);
            put_latency(&r, &k, 100.0 * day[i], 1, 1);
        }
        snprintf(env.started_at_utc, TEXT_SIZE, "2026-11-%02dT10:00:00Z", day[i]);
        snprintf(env.git_commit, TEXT_SIZE, "commit%d", i);
        text_put(env.cpu_model, LINE_SIZE, i == 2 ? "Other CPU" : "Some CPU");
        cr_assert_eq(rundir_env(&r, &env, &e), OK, "%s", e.msg);
        cr_assert_eq(rundir_close(&r, &e), OK, "%s", e.msg);
        cr_assert_eq(plot_read(&run[i], r.path, &e), OK, "%s", e.msg);
    }
}

Test(plot_history, runs_are_in_order_of_date)
{
    static const int day[RUNS] = {12, 10, 11};
    struct plot_data run[RUNS], d = {.runs = run, .n_runs = RUNS};
    struct plot p;
    struct err e;

    make_runs(run, day);
    cr_assert_eq(plot_make(&p, plot_figure("history"), &d, &e), OK, "%s", e.msg);
    cr_assert_eq(p.columns.n, 1, "only one case is in several runs");
    cr_assert_eq(p.n, RUNS);
    cr_assert_eq(p.series.n, 2, "machines are not compared");
    for (int i = 0; i < p.n; i++) {
        const struct plot_point *const a = &p.point[i];
        char commit[16];
        cr_expect_float_eq(a->y, 1000 + 100 * a->x, 1e-9);
        cr_expect_float_eq(a->low, 0.9 * a->y, 1e-9);
        snprintf(commit, sizeof(commit), "commit%d", a->x == 0 ? 1 : a->x == 1 ? 2 : 0);
        cr_expect(strstr(a->label, commit), "%s", a->label);
    }
    plot_free(&p);
    for (int i = 0; i < RUNS; i++)
        plot_data_free(&run[i]);
}

/* A single run has none, and is not asked for one. */
Test(plot_history, is_of_several_runs)
{
    const struct names all = {0};
    struct rundir r;

    cr_expect_not(plot_is_wanted(plot_figure("history"), &all));
    cr_expect(plot_is_wanted(plot_figure("latency-seq"), &all));
    made_open(&r, "aaaa");
    put_env(&r, 1);
    struct plot p = must_plot(r.path, "history");
    cr_expect_eq(p.n, 0);
    cr_expect_gt(strlen(p.why), 10);
    plot_free(&p);
}

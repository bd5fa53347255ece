/* SPDX-License-Identifier: MIT
 *
 * Returns of tasks over steps: the mean of the seeds of each contender, from the curves beside the
 * weights. */
#include "tests/support/figure_rows.h"

static void make_jobs(void)
{
    folder_make();
    cr_assert_eq(mkdir(in_folder("jobs"), 0700), 0);
}

TestSuite(plot_returns, .init = make_jobs, .fini = folder_remove, .timeout = 240);

static void add(struct study_row *all, size_t *n, const char *contender, const char *task,
                const char *role, int seed)
{
    struct study_row *const r = study_put(all, n, contender, "s", task, seed);

    snprintf(r->case_id, TEXT_SIZE, "%s %s %s %d", contender, task, role, seed);
    text_put(r->role, TEXT_SIZE, role);
    text_put(r->variant, TEXT_SIZE, "xl");
    snprintf(r->checkpoint, LINE_SIZE, "jobs/%s%s%d", contender, task, seed);
    r->random_return = 0.5;
    r->optimum_return = 4;
    if (strcmp(role, "final") == 0)
        r->test_return = 2;
}

/* Validations after 10 and 20 steps, `from` and a half more; between them a row without one. */
static void put_curve(const struct study_row *r, double from)
{
    struct train_row row[3];

    for (int i = 0; i < 3; i++) {
        row[i] = train_row_empty();
        row[i].step = i + 1;
        row[i].tokens = 10 + 5 * i;
        row[i].valid_return =
            i == 1 && from != 3 ? NAN : from + 0.25 * i; /* one more in one curve */
    }
    made_table(in_folder(kept_text("%s.train.csv", r->checkpoint)), TABLE_TRAIN, row, 3);
}

static void add_curve(struct study_row *all, size_t *n, const char *contender, const char *task,
                      const char *role, int seed, double from)
{
    add(all, n, contender, task, role, seed);
    put_curve(&all[*n - 1], from);
}

Test(plot_returns, means_over_seeds)
{
    static struct study_row row[16];
    size_t n = 0;

    for (int seed = 1; seed <= 2; seed++) {
        add_curve(row, &n, "a", "maze", "final", seed, seed); /* 1 and 2: a mean of 1.5 */
        add_curve(row, &n, "b", "maze", "final", seed, 3 * seed);
        add_curve(row, &n, "a", "ball", "final", seed, 7);
    }
    add(row, &n, "a", "maze", "tune", 3); /* is not shown */
    put_curve(&row[n - 1], 100);
    struct plot p = study_plot(row, n, "returns");
    cr_assert_eq(p.columns.n, 2);
    cr_assert_eq(p.series.n, 2);
    int means = 0, bounds = 0;
    for (int i = 0; i < p.n; i++) {
        const struct plot_point *const q = &p.point[i];
        if (q->kind > 0) {
            bounds++;
            cr_expect_eq(q->y, q->kind == 1 ? 4 : 0.5);
            cr_expect(q->x == 10 || q->x == 20);
            continue;
        }
        const bool maze = strcmp(p.columns.v[q->column].text, "maze s") == 0;
        const bool b = strcmp(p.series.v[q->series].text, "b") == 0;
        const double later = q->x == 20 ? 0.5 : 0;
        means++;
        cr_expect_float_eq(q->y, (!maze ? 7 : b ? 4.5 : 1.5) + later, 1e-12, "%g", q->y);
        cr_expect_float_eq(q->low, (!maze ? 7 : b ? 3 : 1) + later, 1e-12);
        cr_expect_float_eq(q->high, (!maze ? 7 : b ? 6 : 2) + later, 1e-12);
    }
    NUMBERS({means, 3 * 2}, {bounds, 2 * 2 * 2});
}

/* Baselines have more seeds than others, whose means are of all that they have. */
Test(plot_returns, contenders_have_seeds_of_their_own)
{
    static struct study_row row[8];
    size_t n = 0;
    int means[2] = {0};

    for (int seed = 1; seed <= 3; seed++) {
        add_curve(row, &n, "a", "maze", "final", seed, 7);
        if (seed == 2)
            continue;
        add_curve(row, &n, "b", "maze", "final", seed, 1 + seed);
    }
    struct plot p = study_plot(row, n, "returns");
    for (int i = 0; i < p.n; i++) {
        const struct plot_point *const q = &p.point[i];
        const bool b = strcmp(p.series.v[q->series].text, "b") == 0;
        if (q->kind > 0)
            continue;
        means[b]++;
        cr_expect_float_eq(q->y, (b ? 3 : 7) + (q->x == 20 ? 0.5 : 0), 1e-12, "%g", q->y);
    }
    cr_expect(means[0] == 2 && means[1] == 2, "%d and %d", means[0], means[1]);
}

/* Rows without their trainings, and a study of texts. */
Test(plot_returns, nothing_to_draw)
{
    static struct study_row row[2];
    size_t n = 0;

    add(row, &n, "a", "maze", "final", 1);
    add(row, &n, "a", "novel", "final", 1);
    row[1].test_return = NAN;
    row[1].test_nats = 1;
    struct plot p = study_plot(row, n, "returns");
    cr_expect_eq(p.n, 0);
    cr_expect(*p.why);
}

/* The mean of the seeds that went well is none of the contender's. */
Test(plot_returns, no_line_of_survivors)
{
    static struct study_row row[8];
    size_t n = 0;

    for (int seed = 1; seed <= 2; seed++) {
        add_curve(row, &n, "a", "maze", "final", seed, 1);
        add_curve(row, &n, "b", "maze", "final", seed, 3);
    }
    text_put(row[0].status, TEXT_SIZE, "failed");
    struct plot p = study_plot(row, n, "returns");
    for (int i = 0; i < p.n; i++)
        if (p.point[i].kind == 0)
            cr_expect_str_eq(p.series.v[p.point[i].series].text, "b");
    cr_expect_str_eq(p.why, "not drawn, because seeds have no score: 1");
}

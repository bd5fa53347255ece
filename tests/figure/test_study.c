/* SPDX-License-Identifier: MIT
 *
 * Verdicts of a study as points. */
#include "tests/support/figure_rows.h"

TestSuite(plot_study, .init = folder_make, .fini = folder_remove, .timeout = 240);

static void add(struct study_row *all, size_t *n, const char *contender, const char *size, int seed,
                double nats, double seconds)
{
    struct study_row *const r = study_put(all, n, contender, size, "text", seed);

    r->test_nats = nats + 0.01 * (seed - 2) * (r->baseline ? 1 : 2);
    r->tokens = 1000;
    r->train_s = seconds * (1 + 0.01 * seed);
}

/* Two sizes: a panel each, with the baseline at its origin and the noise floor around it. At the
 * second size one contender has a single seed: it is not drawn, and said to be missing. */
Test(plot_study, differences_from_the_baseline)
{
    static struct study_row row[32];
    size_t n = 0;

    for (int seed = 1; seed <= 3; seed++) {
        add(row, &n, "base", "s", seed, 2, 1);
        add(row, &n, "worse", "s", seed, 3, 2);
        add(row, &n, "base", "l", seed, 1.5, 4);
        if (seed == 1)
            add(row, &n, "worse", "l", seed, 3, 2);
        add(row, &n, "better", "l", seed, 1, 4);
    }
    struct plot p = study_plot(row, n, "study");
    cr_assert_eq(p.columns.n, 2);
    cr_expect_str_eq(p.columns.v[0].text, "text s");
    int entries = 0, floors = 0;
    for (int i = 0; i < p.n; i++) {
        const struct plot_point *const a = &p.point[i];
        floors += a->kind == 2;
        if (a->kind != 0)
            continue;
        entries++;
        const bool worse = strcmp(a->label, "worse") == 0, base = strcmp(a->label, "base") == 0;
        cr_expect_float_eq(a->x, worse ? 2 : 1, 1e-12, "%s %g", a->label, a->x);
        cr_expect_float_eq(a->y, base ? 0 : worse ? 1 : -0.5, 1e-12);
        cr_expect(a->z >= 1);
        if (!base)
            cr_expect(a->low < a->y && a->high > a->y);
        TEXTS({p.series.v[a->series].text, base ? "baseline" : worse ? "worse" : "better"});
    }
    NUMBERS({entries, 4}, {floors, 2});
    HAS(p.why, "1");
}

/* Labels name the control, and controls without one share the origin. */
Test(plot_study, differences_from_controls)
{
    static const char *const pairs[][2] = {{"low", ""}, {"high", ""}, {"a", "low"}, {"b", "high"}};
    static struct study_row row[32];
    char labels[256] = "";
    size_t n = 0;

    for (int seed = 1; seed <= 3; seed++)
        for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
            add(row, &n, pairs[i][0], "s", seed, 2 + (double)i, 1);
            text_put(row[n - 1].control, TEXT_SIZE, pairs[i][1]);
            row[n - 1].baseline = i < 2;
        }
    struct plot p = study_plot(row, n, "study");
    for (int i = 0; i < p.n; i++)
        if (p.point[i].kind == 0)
            snprintf(labels + strlen(labels), sizeof(labels) - strlen(labels), "%s;",
                     p.point[i].label);
    cr_expect_str_eq(labels, "a vs low;b vs high;its control;");
}

/* On either side. */
Test(plot_study, no_difference_of_survivors)
{
    static struct study_row row[16];

    for (int lost = 0; lost < 2; lost++) {
        size_t n = 0;
        for (int seed = 1; seed <= 4; seed++) {
            add(row, &n, "base", "s", seed, 2, 1);
            add(row, &n, "other", "s", seed, 1, 1);
        }
        text_put(row[lost].status, TEXT_SIZE, "failed");
        struct plot p = study_plot(row, n, "study");
        cr_expect_eq(p.n, 0);
        HAS(p.why, "each with a score");
    }
}

Test(plot_study, nothing_to_compare)
{
    static struct study_row row[2];
    size_t n = 0;

    add(row, &n, "base", "s", 1, 2, 1);
    add(row, &n, "base", "s", 2, 2, 1);
    struct plot p = study_plot(row, n, "study");
    cr_expect_eq(p.n, 0);
    cr_expect(*p.why);
}

/* Loss over budgets: a panel a text and size, a line a contender, whose intervals are those of means; not one
 * that lost a seed. */
Test(plot_study, over_budgets)
{
    static struct study_row row[32];
    size_t n = 0;

    for (int k = 0; k < 2; k++)
        for (int seed = 1; seed <= 6; seed++) { /* three of either */
            const bool base = seed <= 3;
            add(row, &n, base ? "base" : "other", "s", base ? seed : seed - 3, base ? 2 - k : 2 + k,
                1);
            row[n - 1].budget_tokens = 1000 << k;
            snprintf(row[n - 1].case_id, TEXT_SIZE, "%d.%d", k, seed);
        }
    text_put(row[n - 1].status, TEXT_SIZE, "failed");
    struct plot p = study_plot(row, n, "budgets");
    cr_assert_eq(p.columns.n, 1);
    cr_expect_str_eq(p.columns.v[0].text, "text s");
    cr_assert_eq(p.n, 3, "%d", p.n);
    for (int i = 0; i < p.n; i++) {
        const struct plot_point *const a = &p.point[i];
        const bool base = strcmp(p.series.v[a->series].text, "base") == 0;
        cr_expect(a->x == 1000 || (a->x == 2000 && base));
        cr_expect_float_eq(a->y, a->x == 1000 ? 2 : 1, 1e-12);
        /* Student's 0.975 quantile with two degrees of freedom; a seed differs by 0.01 or 0.02 */
        cr_expect_float_eq(a->high - a->y, 4.302653 * (base ? 0.01 : 0.02) / sqrt(3), 1e-6);
        cr_expect_float_eq(a->y - a->low, a->high - a->y, 1e-12);
    }
    cr_expect(strstr(p.why, "no score: 1"), "%s", p.why);
    p = must_plot(folder, "study"); /* differences are in panels by budget */
    cr_assert_eq(p.columns.n, 2);
    cr_expect_str_eq(p.columns.v[0].text, "text s 1k");
}

/* SPDX-License-Identifier: MIT
 *
 * How far models came on generated texts, as cells. */
#include "tests/support/figure_rows.h"

TestSuite(plot_abilities, .init = folder_make, .fini = folder_remove, .timeout = 240);

/* `above` its floor, of `blind` nats; a text without answers if that is NAN. */
static void add(struct study_row *all, size_t *n, const char *contender, const char *corpus,
                int seed, double above, double blind)
{
    struct study_row *const r = study_put(all, n, contender, "s", corpus, seed);

    r->test_nats = 1;
    r->test_answer_nats = isnan(blind) ? NAN : 0.5 + above;
    r->test_answer_floor_nats = isnan(blind) ? NAN : 0.5;
    r->test_answer_blind_nats = blind;
}

Test(plot_abilities, a_cell_for_each_text_that_asks)
{
    static struct study_row row[32];
    size_t n = 0;

    for (int seed = 1; seed <= 2; seed++) {
        add(row, &n, "base", "copy", seed, 2, 2.5);
        add(row, &n, "able", "copy", seed, 0.01 * (seed - 1), 2.5);
        add(row, &n, "base", "cue", seed, seed == 1 ? 0.5 : 1.5, 2.5);
        add(row, &n, "able", "novel", seed, 0, NAN);
    }
    struct plot p = study_plot(row, n, "abilities");
    int cells = 0, lines = 0, texts = 0;
    for (int i = 0; i < p.n; i++) {
        const struct plot_point *const a = &p.point[i];
        const char *const verdict = p.series.v[a->series].text;
        lines += a->kind == 1 && isfinite(a->y) && isnan(a->x);
        texts += a->kind == 2 && isfinite(a->x) && isnan(a->y);
        if (a->kind != 0)
            continue;
        cells++;
        const bool able = a->y == 1, cue = a->x == 1;
        cr_expect_str_eq(verdict, able ? "reached" : "not reached");
        cr_expect_float_eq(a->z, able ? 1 - 0.005 / 2 : cue ? 0.5 : 0, 1e-12, "%g", a->z);
        cr_expect_float_eq(a->low, able ? 1 - 0.01 / 2 : cue ? 0.25 : 0, 1e-12, "%g", a->low);
        cr_expect_float_eq(a->high, able ? 1 : cue ? 0.75 : 0, 1e-12, "%g", a->high);
    }
    NUMBERS({cells, 3}, {lines, 2}, {p.rows.n, 1});
    cr_expect_eq(texts, 2, "a novel asks nothing");
}

/* The mean of the seeds that went well is none of the contender's. */
Test(plot_abilities, no_cell_of_survivors)
{
    static struct study_row row[8];
    size_t n = 0;

    for (int seed = 1; seed <= 3; seed++) {
        add(row, &n, "base", "copy", seed, 2, 2.5);
        add(row, &n, "able", "copy", seed, 0.01, 2.5);
    }
    text_put(row[n - 1].status, TEXT_SIZE, "wrong");
    struct plot p = study_plot(row, n, "abilities");
    int cells = 0;
    for (int i = 0; i < p.n; i++)
        cells += p.point[i].kind == 0;
    cr_expect_eq(cells, 1);
    cr_expect_str_eq(p.why, "not drawn, because seeds have no score: 1");
}

/* A task has a cell without any answers: a return of 3 between 1 at random and 5. */
Test(plot_abilities, a_cell_for_each_task)
{
    static struct study_row row[2];
    size_t n = 0;

    for (int seed = 1; seed <= 2; seed++) {
        add(row, &n, "base", "maze", seed, 0, NAN);
        row[n - 1].test_nats = NAN;
        row[n - 1].random_return = 1;
        row[n - 1].optimum_return = 5;
        row[n - 1].test_return = 1 + 2.0 * seed;
        row[n - 1].solved = seed == 2;
    }
    struct plot p = study_plot(row, n, "abilities");
    int cells = 0;
    for (int i = 0; i < p.n; i++)
        if (p.point[i].kind == 0) {
            cells++;
            cr_expect_str_eq(p.series.v[p.point[i].series].text, "not reached", "one of two seeds");
            NUMBERS({p.point[i].z, 0.75, 1e-12}, {p.point[i].low, 0.5, 1e-12},
                    {p.point[i].high, 1, 1e-12});
        }
    cr_expect_eq(cells, 1);
}

Test(plot_abilities, no_text_asks)
{
    static struct study_row row[2];
    size_t n = 0;

    add(row, &n, "base", "novel", 1, 0, NAN);
    struct plot p = study_plot(row, n, "abilities");
    cr_expect_eq(p.n, 0);
    cr_expect(*p.why);
}

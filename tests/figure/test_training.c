/* SPDX-License-Identifier: MIT
 *
 * Training curves of a study: a line a contender, by its name. */
#include "tests/support/figure_rows.h"

TestSuite(plot_training, .init = folder_make, .fini = folder_remove, .timeout = 240);

enum { STEPS = 3 };

static void put_training(struct study_row *r, const char *contender, const char *role, int seed,
                         const char *unit, double loss)
{
    struct train_row row[STEPS];

    *r = study_row_empty();
    text_put(r->status, TEXT_SIZE, "ok");
    text_put(r->role, TEXT_SIZE, role);
    text_put(r->contender, TEXT_SIZE, contender);
    text_put(r->variant, TEXT_SIZE, "xl");
    text_put(r->size, TEXT_SIZE, "s");
    text_put(r->corpus, LINE_SIZE, "novel");
    text_put(r->unit, TEXT_SIZE, unit);
    snprintf(r->checkpoint, LINE_SIZE, "jobs/%s-%s-%d", contender, role, seed);
    r->seed = seed;
    r->test_nats = loss;
    for (int i = 0; i < STEPS; i++) {
        row[i] = train_row_empty();
        row[i].step = 50 + 5 * i;
        row[i].loss_nats = loss - 0.1 * i;
        row[i].valid_nats = i == STEPS - 1 ? loss + 1 : NAN;
    }
    made_table(in_folder(kept_text("%s.train.csv", r->checkpoint)), TABLE_TRAIN, row, STEPS);
}

/* Two contenders of two seeds, whose losses are 1 and 3, and 5 and 5.5; one tried another rate. */
static struct plot plot_two(const char *unit, const char *other)
{
    static struct study_row row[5];

    cr_assert_eq(mkdir(in_folder("jobs"), 0700), 0);
    put_training(&row[0], "a", "final", 1, unit, 1);
    put_training(&row[1], "a", "final", 2, unit, 3);
    put_training(&row[2], "b", "final", 1, other, 5);
    put_training(&row[3], "b", "final", 2, other, 5.5);
    put_training(&row[4], "a", "tune", 1, unit, 100);
    return study_plot(row, 5, "training");
}

Test(plot_training, a_study_has_a_line_a_contender)
{
    struct plot p = plot_two("byte", "byte");

    cr_assert_eq(p.columns.n, 1);
    cr_assert_eq(p.series.n, 2, "contenders, not seeds");
    TEXTS({p.series.v[0].text, "a"}, {p.series.v[1].text, "b"});
    cr_assert_eq(p.n, 2 * (STEPS + 1), "losses, and a validation each");
    for (int i = 0; i < STEPS; i++) {
        const struct plot_point *const a = point_at(&p, 0, 0, 0, 0, 50 + 5 * i);
        NUMBERS({a->y, 2 - 0.1 * i, 1e-12}, {a->low, 1 - 0.1 * i, 1e-12},
                {a->high, 3 - 0.1 * i, 1e-12});
    }
    cr_expect_float_eq(point_at(&p, 0, 0, 1, 1, 60)->y, 6.25, 1e-12);
    cr_expect_str_eq(p.y_title, "loss (nats per byte)");
}

Test(plot_training, losses_of_several_units_are_of_tokens)
{
    struct plot p = plot_two("byte", "symbol");

    cr_expect_str_eq(p.y_title, "loss (nats per token)");
}

/* SPDX-License-Identifier: MIT
 *
 * The samples of a case as points. */
#include "tests/support/figure_rows.h"

TestSuite(plot_strips, .init = folder_make, .fini = folder_remove, .timeout = 240);

/* Cases of 100, 200, ... ns with four samples each, the third preempted. */
static void make_cases(struct rundir *r, int n, bool with_samples)
{
    *r = made_open("aaaa");
    for (int i = 0; i < n; i++) {
        const char *const id = kept_text("case%02d", i);
        const struct made_case c = {variants[0]->name, "one", id, 8 + i, 100.0 * (i + 1)};
        made_row(r, &c, "host", "ok", "", 1);
        for (int k = 0; k < 4 && with_samples; k++)
            made_sample(r, id, k, c.ns + k, k == 2);
    }
    made_close(r, "host", "CPU");
}

Test(plot_strips, a_panel_has_its_samples_and_its_median)
{
    struct rundir r;

    make_cases(&r, 2, true);
    struct plot p = must_plot(r.path, "samples");
    cr_assert_eq(p.columns.n, 2, "a panel a case");
    for (int i = 0; i < 2; i++) {
        const double ns = 100.0 * (i + 1);
        for (int k = 0; k < 4; k++)
            cr_expect_float_eq(point_at(&p, 0, i, 0, k == 2, k + 1)->y, ns + k, 1e-9);
        const struct plot_point *const median = point_at(&p, 0, i, 0, 2, 0.5);
        NUMBERS({median->y, ns, 1e-9}, {median->low, 0.99 * ns, 1e-9},
                {median->high, 1.01 * ns, 1e-9}, {point_at(&p, 0, i, 0, 2, 4.5)->y, ns, 1e-9});
    }
    cr_expect_str_neq(p.columns.v[0].text, p.columns.v[1].text);
}

/* A title names what tells its case from the others, not what its variant always has. */
Test(plot_strips, titles_say_what_differs)
{
    struct rundir r = made_open("aaaa");
    for (int i = 0; i < 4; i++) {
        struct key_row k = key_of(&r, variants[i / 2]->name, "one", 8 << i % 2, 0);
        k.clip = i / 2 ? 16 : I64_EMPTY;
        snprintf(k.case_id, TEXT_SIZE, "case%d", i);
        struct latency_row row = ROW_OF(latency, LATENCY, &k);
        row.median_ns = 100;
        made_write(&r, TABLE_LATENCY, &row);
        made_sample(&r, k.case_id, 0, 100, 0);
    }
    struct plot p = plot_of(&r, "samples");
    cr_assert_eq(p.columns.n, 4);
    for (int i = 0; i < 4; i++) {
        const char *const title = kept_text("%s seq %d one", variants[i / 2]->name, 8 << i % 2);
        cr_expect_str_eq(p.columns.v[i].text, title);
    }
}

Test(plot_strips, what_has_no_room_is_said)
{
    struct rundir r;

    make_cases(&r, 15, true);
    struct plot p = must_plot(r.path, "samples");
    cr_expect_eq(p.columns.n, 12);
    HAS(PRINTED(f, plot_print_csv(f, &p)), "\n3,2,"); /* three abreast */
    HAS(p.why, "15");
}

Test(plot_strips, a_run_without_samples_has_none)
{
    struct rundir r;

    make_cases(&r, 2, false);
    struct plot p = must_plot(r.path, "samples");
    cr_expect_eq(p.n, 0);
    cr_expect_gt(strlen(p.why), 10);
}

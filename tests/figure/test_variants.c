/* SPDX-License-Identifier: MIT
 *
 * Bars of variants: which stand in which panel, in which order, and what is said of them. */
#include "tests/support/figure_rows.h"
#include "tests/support/program.h"

TestSuite(plot_variants, .init = folder_make, .fini = folder_remove, .timeout = 240);

enum { BLOCKS = 20 };

/* A case of 20 blocks near `ns`; `preempted`: all of them, of which 0.9 is CPU time. */
static void put_case(struct rundir *r, int variant, const char *backend, const char *workload,
                     double ns, bool preempted)
{
    struct key_row k = key_of(r, variants[variant]->name, backend, 8, 0);

    text_put(k.workload, TEXT_SIZE, workload);
    snprintf(k.case_id, TEXT_SIZE, "%s%s%d", workload, backend, variant);
    struct latency_row row = ROW_OF(latency, LATENCY, &k);
    row.median_ns = ns;
    row.ci95_low_ns = 0.9 * ns;
    row.ci95_high_ns = 1.1 * ns;
    row.cpu_time_median_ns = 0.9 * ns;
    row.samples = BLOCKS;
    row.samples_disturbed = preempted ? BLOCKS : 0;
    made_write(r, TABLE_LATENCY, &row);
    for (int i = 0; i < BLOCKS; i++)
        made_sample(r, k.case_id, i, ns * (1 + 0.001 * (i % 3)), preempted);
}

static const struct plot_point *bar(const struct plot *p, int column, int x)
{
    for (int i = 0; i < p->n; i++)
        if (p->point[i].column == column && p->point[i].x == x)
            return &p->point[i];
    cr_assert(false, "no bar %d in panel %d", x, column);
    return NULL;
}

static const char *said_of(const struct plot *p, const struct plot_point *a)
{
    return p->series.v[a->series].text;
}

Test(plot_variants, bars_are_in_order_of_time_on_the_fastest_backend)
{
    struct rundir r = made_open("aaaa");
    put_case(&r, 0, "one", "layer", 300, false);
    put_case(&r, 0, "two", "layer", 200, false);
    put_case(&r, 1, "one", "layer", 100, false);
    put_case(&r, 1, "two", "layer", 150, false);
    put_case(&r, 0, "one", "decode", 10, false);
    put_case(&r, 1, "one", "decode", 20, false);
    struct plot p = plot_of(&r, "variants");
    cr_assert_eq(p.columns.n, 2, "a panel a workload");
    cr_assert_eq(p.n, 4, "a bar a variant");
    HAS(PRINTED(f, plot_print_csv(f, &p)), "\n0,1,"); /* two abreast */
    const int layer = strcmp(p.columns.v[0].text, "layer") != 0;
    const struct plot_point *const first = bar(&p, layer, 0), *const second = bar(&p, layer, 1);
    const char *const label = kept_text("%s one", variants[1]->name);
    cr_expect_str_eq(first->label, label, "backends differ");
    NUMBERS({first->y, 100}, {first->low, 90, 1e-9}, {first->high, 110, 1e-9}, {second->y, 200});
    TEXTS({said_of(&p, first), "fastest"}, {said_of(&p, second), "slower"});
    cr_expect_str_eq(bar(&p, !layer, 0)->label, variants[0]->name, "all on one backend");
}

/* As the ranking: CPU time, and the interval of what it compares. */
Test(plot_variants, a_busy_machine_has_cpu_time)
{
    struct rundir r = made_open("aaaa");
    put_case(&r, 0, "one", "layer", 100, true);
    put_case(&r, 1, "one", "layer", 200, true);
    struct plot p = plot_of(&r, "variants");
    cr_assert_eq(p.n, 2);
    HAS(p.columns.v[0].text, "CPU time");
    cr_expect_float_eq(bar(&p, 0, 0)->y, 90, 1e-9);
    cr_expect(isnan(bar(&p, 0, 0)->low), "the ratio of the first to itself is not measured");
    cr_expect_float_eq(bar(&p, 0, 1)->y, 180, 1e-9);
    cr_expect(bar(&p, 0, 1)->low > 150 && bar(&p, 0, 1)->low <= 181, "%g", bar(&p, 0, 1)->low);
    cr_expect(bar(&p, 0, 1)->high < 210 && bar(&p, 0, 1)->high >= 179, "%g", bar(&p, 0, 1)->high);
}

Test(plot_variants, without_a_choice_there_is_no_figure)
{
    struct rundir r = made_open("aaaa");
    put_case(&r, 0, "one", "layer", 100, false);
    put_case(&r, 0, "two", "layer", 100, false);
    struct plot p = plot_of(&r, "variants");
    cr_expect_eq(p.n, 0);
    HAS(p.why, "two variants");
}

Test(plot_variants, many_shapes_are_refused_with_the_remedy)
{
    struct rundir r = made_open("aaaa");
    for (int i = 0; i < 14; i++) {
        struct made_case c = {variants[i % 2]->name, "one", "", 8 << i / 2, 100.0 + i};
        const char *const id = kept_text("case%d", i);
        c.id = id;
        made_row(&r, &c, "host", "ok", "", 1);
    }
    struct plot p = plot_of(&r, "variants");
    cr_expect_eq(p.n, 0);
    HAS(p.why, "7 shapes", "--filter");
}

/* Where the bars of one run are the picture of the page, they stand above all others, once; what is
 * for a closer look is folded. */
Test(plot_variants, the_report_begins_with_them)
{
    struct rundir r = made_open("aaaa");
    put_case(&r, 0, "one", "layer", 100, false);
    put_case(&r, 1, "one", "layer", 200, false);
    put_env(&r, 1);
    need_programs("gnuplot");
    must_bench("report %s -o page.html", r.path);
    const struct bytes page = folder_read("page.html");
    const char *const bars = strstr(page.data, "-variants\">"), *const run =
                                                                    strstr(page.data, "<section");
    cr_assert(bars && run && bars < run, "on top");
    cr_expect_null(strstr(bars + 1, "-variants\">"), "once");
    const char *const samples = strstr(page.data, "-samples\">");
    cr_assert(samples && samples > run);
    const char *fold = samples;
    while (fold > run && strncmp(fold, "<details>", 9) != 0 && strncmp(fold, "</details>", 10) != 0)
        fold--;
    cr_expect_eq(strncmp(fold, "<details>", 9), 0, "folded");
}

/* SPDX-License-Identifier: MIT
 *
 * Scores of a study in figures: a point a contender, with the mean over its seeds and its interval. */
#include "tests/support/figure_rows.h"
#include "tests/support/program.h"

TestSuite(plot_seeds, .init = folder_make, .fini = folder_remove, .timeout = 240);

enum { SEEDS = 3 };

static const struct contender {
    const char *name;
    int d_inner;
    double nats[SEEDS];
} contenders[] = {{"a", 32, {1, 1.2, 1.4}}, {"b", 48, {2, 2, 2}}};

/* Two contenders of one variant, of which one is wider; `lengths` of context are scored. */
static void make_study(const char *const *sizes, int n_sizes, int lengths)
{
    struct study_row trained[16];
    size_t n = 0;

    struct rundir r = made_open("aaaa");
    for (int z = 0; z < n_sizes; z++)
        for (size_t c = 0; c < ARRAY_LEN(contenders); c++)
            for (int seed = 0; seed < SEEDS; seed++) {
                struct study_row *const s =
                    study_put(trained, &n, contenders[c].name, sizes[z], "", seed);
                text_put(s->variant, TEXT_SIZE, variants[0]->name);
                snprintf(s->checkpoint, LINE_SIZE, "jobs/%zu", n);
                s->d_inner = contenders[c].d_inner;
                s->layers = z + 1;
                for (int m = 0; m < lengths; m++) {
                    struct key_row k = key_of(&r, variants[0]->name, "one", 8, 64 * m);
                    k.d_inner = contenders[c].d_inner;
                    k.layers = z + 1;
                    struct perplexity_row row = ROW_OF(perplexity, PERPLEXITY, &k);
                    snprintf(row.checkpoint, LINE_SIZE, "there/%.1000s", s->checkpoint);
                    row.ppl = exp(contenders[c].nats[seed] + m);
                    row.ppl_ci95_low = row.ppl - 0.01;
                    row.ppl_ci95_high = row.ppl + 0.01;
                    row.tokens_per_s = 1e6 / (1.0 + seed + (double)c);
                    made_write(&r, TABLE_PERPLEXITY, &row);
                }
            }
    put_env(&r, 1);
    made_table(kept_text("%s/%s", r.path, tables[TABLE_STUDY].file), TABLE_STUDY, trained, n);
    cr_assert_eq(rename(r.path, in_folder("run")), 0);
}

static struct plot must_plot_run(const char *figure) { return must_plot(in_folder("run"), figure); }

Test(plot_seeds, a_contender_is_one_point_with_its_interval)
{
    static const char *const sizes[] = {"small"};

    make_study(sizes, 1, 1);
    struct plot p = must_plot_run("perplexity-time");
    cr_assert_eq(p.rows.n, 1, "widths of contenders make no panel");
    cr_assert_eq(p.series.n, 2);
    TEXTS({p.series.v[0].text, "a"}, {p.series.v[1].text, "b"});
    const struct plot_point *const a = point_at(&p, 0, 0, 0, 0, 2);
    NUMBERS({a->y, exp(1.2), 1e-9}, {log(a->low), 1.2 - 4.302652729749464 * 0.2 / sqrt(3), 1e-6},
            {point_at(&p, 0, 0, 1, 0, 3)->y, exp(2), 1e-9});
    cr_expect_float_eq(log(a->high), 1.2 + 4.302652729749464 * 0.2 / sqrt(3), 1e-6, "Student's t");
    cr_expect_str_eq(a->label, "a", "the context that all share tells none apart");
}

Test(plot_seeds, contexts_that_differ_stay_as_labels)
{
    static const char *const sizes[] = {"small"};

    make_study(sizes, 1, 2);
    struct plot p = must_plot_run("perplexity-time");
    int points = 0, contexts = 0;
    for (int i = 0; i < p.n; i++) {
        points += p.point[i].kind == 0;
        contexts += p.point[i].kind == 0 && strcmp(p.point[i].label, "64") == 0;
    }
    NUMBERS({points, 4}, {contexts, 2});
    p = must_plot_run("perplexity-mem");
    NUMBERS({p.series.n, 2}, {p.n, 4});
}

Test(plot_seeds, sizes_of_the_study_are_panels)
{
    static const char *const sizes[] = {"small", "large"};

    make_study(sizes, 2, 1);
    struct plot p = must_plot_run("perplexity-time");
    cr_assert_eq(p.rows.n, 2);
    TEXTS({p.rows.v[0].text, "small"}, {p.rows.v[1].text, "large"});
}

/* The page draws these, one line a contender. */
Test(plot_seeds, the_report_has_scores_by_contender)
{
    static const char *const sizes[] = {"small"};
    int lines = 0;

    make_study(sizes, 1, 2);
    must_bench("report run -o page.html --figure perplexity-mem");
    struct bytes page = must_load(in_folder("page.html"));
    const char *const from = strstr(page.data, "-scores.csv\" href=\"");
    cr_assert_not_null(from);
    const char *const end = strchr(from + strlen("-scores.csv\" href=\""), '"');
    for (const char *at = from; (at = strstr(at, "%0A")) && at < end; at++)
        lines++;
    cr_expect_eq(lines, 1 + 2 * 2, "a head, and two contexts of two contenders: %d", lines);
}

/* SPDX-License-Identifier: MIT
 *
 * What a figure says about all its rows, and which of them it shows: the reference and backends. */
#include "tests/support/figure_rows.h"

TestSuite(plot_caption, .init = folder_make, .fini = folder_remove, .timeout = 240);

static const char *reference(void)
{
    int i = 0;

    while (!plot_is_reference(backends[i]->name))
        i++;
    return backends[i]->name;
}

/* One variant on the reference and two backends, over three lengths. */
static void make_backends(struct rundir *r, int variants_n)
{
    const char *const on[] = {reference(), "one", "two"};

    *r = made_open("aaaa");
    for (int v = 0; v < variants_n; v++)
        for (int b = 0; b < 3; b++)
            for (int seq = 16; seq <= 64; seq *= 2) {
                const struct key_row k = key_of(r, variants[v]->name, on[b], seq, 32);
                put_latency(r, &k, (b ? 1 : 50) * seq, 8, 1);
            }
}

static struct plot plot_of_tree(int64_t dirty)
{
    struct env_row env = env_row_empty();
    struct rundir r;

    make_backends(&r, 2);
    env.git_dirty = dirty;
    text_put(env.cpu_model, LINE_SIZE, "Some CPU");
    text_put(env.started_at_utc, TEXT_SIZE, "2026-11-22T10:00:00Z");
    text_put(env.bench_version, TEXT_SIZE, "9.9");
    text_put(env.git_commit, TEXT_SIZE, "abcdef1");
    MUST(rundir_env(&r, &env, &failure));
    MUST(rundir_close(&r, &failure));
    return must_plot(r.path, "latency-seq");
}

Test(plot_caption, says_what_is_common_and_where)
{
    struct plot p = plot_of_tree(0);

    HAS(p.subject, "attn", "mem 32", "threads 1");
    cr_expect_not(strstr(p.subject, "seq"), "what differs is not common: %s", p.subject);
    cr_expect_str_eq(p.where, "Some CPU, 2026-11-22, bench 9.9 abcdef1");
}

/* What was measured is in no commit, and this does not say that it is. */
Test(plot_caption, a_changed_tree_comes_after_its_commit)
{
    struct plot p = plot_of_tree(1);

    cr_expect_str_eq(p.where, "Some CPU, 2026-11-22, bench 9.9 after abcdef1");
}

/* It is 50 times slower: beside it the others look alike. */
Test(plot_caption, the_reference_is_left_out_unless_it_is_the_base_or_alone)
{
    const char *const filters[] = {"backend:ref"};
    const struct names only = {.v = (const char **)filters, .n = 1};
    struct plot_data d;
    struct rundir r;
    struct plot p;

    make_backends(&r, 2);
    put_env(&r, 1);
    p = must_plot(r.path, "latency-seq");
    cr_expect_eq(p.columns.n, 2);
    for (int c = 0; c < p.columns.n; c++)
        cr_expect_not(plot_is_reference(p.columns.v[c].text));
    HAS(p.subject, "reference");

    MUST(plot_read(&d, r.path, &failure));
    MUST(plot_set_base(&d, reference(), &failure));
    MUST(plot_make(&p, plot_figure("latency-seq"), &d, &failure));
    cr_expect_eq(p.columns.n, 3);
    cr_expect_not(strstr(p.subject, "reference"), "%s", p.subject);
    plot_free(&p);

    cr_assert_eq(plot_set_base(&d, NULL, &failure), OK);
    MUST(plot_filter(&d, &only, &failure));
    MUST(plot_make(&p, plot_figure("latency-seq"), &d, &failure));
    cr_expect_eq(p.n, 2 * 3);
    plot_free(&p);
    plot_data_free(&d);
}

/* Rivals are compared in one panel, not across panels. */
Test(plot_caption, one_variant_meets_its_backends_in_one_panel)
{
    struct rundir r;

    make_backends(&r, 1);
    struct plot p = plot_of(&r, "latency-seq");
    cr_assert_eq(p.columns.n, 1);
    cr_expect_str_eq(p.columns.v[0].text, variants[0]->name);
    cr_assert_eq(p.series.n, 2);
    TEXTS({p.series.v[0].text, "one"}, {p.series.v[1].text, "two"});
}

/* Points that lie on each other stay in panels of their own, others share one. */
Test(plot_caption, a_roofline_is_one_panel_if_its_points_are_apart)
{
    for (int apart = 0; apart < 2; apart++) {
        struct rundir r = made_open(apart ? "aaaa" : "bbbb");
        for (int v = 0; v < 2; v++)
            for (int b = 0; b < 2; b++)
                for (int seq = 16; seq <= 64; seq *= 2) {
                    const struct key_row k =
                        key_of(&r, variants[v]->name, b ? "one" : "two", seq, 0);
                    put_latency(&r, &k, (1 + v) * (apart && b ? 3 : 1) * 100, 8 * seq, 1);
                }
        struct plot p = plot_of(&r, "roofline");
        cr_expect_eq(p.columns.n, apart ? 1 : 2);
        cr_expect_eq(p.series.n, 2 + (apart ? 4 : 2), "two ceilings");
    }
}

/* A backend that is called like a level of instructions is no ceiling. */
Test(plot_caption, backends_of_a_roofline_are_not_its_ceilings)
{
    struct env_row env = env_row_empty();

    struct rundir r = made_open("aaaa");
    for (int b = 0; b < 2; b++)
        for (int seq = 16; seq <= 64; seq *= 2) {
            const struct key_row k = key_of(&r, variants[0]->name, b ? "one" : isa_name[1], seq, 0);
            put_latency(&r, &k, (1 + 4 * b) * 100, 8 * seq, 1);
        }
    env.peak_threads = 1;
    env.peak_flop_per_s_avx2 = env.read_byte_per_s_dram = 50e9;
    MUST(rundir_env(&r, &env, &failure));
    MUST(rundir_close(&r, &failure));
    struct plot p = must_plot(r.path, "roofline");
    cr_expect_eq(p.series.n, 2 + 2);
    for (int i = 0; i < p.n; i++)
        cr_expect_eq(p.series.v[p.point[i].series].style >= STYLE_FOREIGN, p.point[i].kind > 0);
}

/* Lines of two points say little in many panels: they are left out, and that is said. */
Test(plot_caption, many_panels_of_two_points_are_left_out)
{
    for (int many = 0; many < 2; many++) {
        struct rundir r = made_open(many ? "aaaa" : "bbbb");
        for (int seq = 16; seq <= (many ? 256 : 32); seq *= 2)
            for (int b = 0; b < 2; b++)
                for (int v = 0; v < 2; v++)
                    for (int mem = 0; mem <= 64; mem += 64) {
                        const struct key_row k =
                            key_of(&r, variants[v]->name, b ? "one" : "two", seq, mem);
                        put_latency(&r, &k, seq, 1, 1);
                    }
        struct plot p = plot_of(&r, "latency-mem");
        cr_expect_eq(p.n, many ? 0 : 16);
        if (many)
            HAS(p.why, "5 shapes");
    }
}

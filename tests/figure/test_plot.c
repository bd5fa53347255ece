/* SPDX-License-Identifier: MIT
 *
 * Figures: which points a figure takes from rows with known numbers, names and styles of its
 * series, and what is left out and why. */
#include "tests/support/figure_rows.h"
#include "tests/support/words.h"

TestSuite(plot, .init = folder_make, .fini = folder_remove, .timeout = 100);

/* ---- runs with known rows ------------------------------------------------------------------ */

/* Two variants, two backends, three lengths, two memories; time = (1 + variant) * seq^2 ns on the
 * first backend and half of it on the second. */
static const struct backend *usual[2];
static struct rundir make_grid(void)
{
    struct rundir r = made_open("aaaa");

    usual[0] = backends[1] ? backends[1] : backends[0];
    usual[1] = backends[1] && backends[2] ? backends[2] : backends[0];
    for (int v = 0; v < 2; v++)
        for (int b = 0; b < 2; b++)
            for (int seq = 128; seq <= 512; seq *= 2)
                for (int mem = 0; mem <= 64; mem += 64) {
                    const struct key_row k =
                        key_of(&r, variants[v]->name, usual[b]->name, seq, mem);
                    const double ns = (1 + v) * (double)seq * seq / (1 + b);
                    put_latency(&r, &k, ns, 8 * ns, 100);
                }
    put_env(&r, 1);
    return r;
}

/* ---- points -------------------------------------------------------------------------------- */

Test(plot, lines_are_the_rows)
{
    struct rundir r = make_grid();
    struct plot p = must_plot(r.path, "latency-seq");
    cr_assert_eq(p.n, 24);
    cr_assert_eq(p.rows.n, 2);
    cr_assert_eq(p.columns.n, 2);
    cr_assert_eq(p.series.n, 2);
    TEXTS({p.rows.v[0].text, "mem 0"}, {p.rows.v[1].text, "mem 64"});
    for (int v = 0; v < 2; v++) {
        TEXTS({p.series.v[v].text, variants[v]->name}, {p.columns.v[v].text, usual[v]->name});
        for (int c = 0; c < 2; c++) {
            const struct plot_point *const a = point_at(&p, 1, c, v, 0, 256);
            const double ns = (1 + v) * 65536.0 / (1 + c);
            NUMBERS({a->y, ns, 1e-6}, {a->low, 0.9 * ns, 1e-6}, {a->high, 1.1 * ns, 1e-6});
            cr_expect_float_eq(a->z, 2, 1e-9, "the time is the square of the length");
        }
    }
    p = must_plot(r.path, "latency-mem");
    NUMBERS({p.n, 24}, {p.rows.n, 3});
}

/* A variant looks the same whether others are in the file or not; so does an unknown one. */
Test(plot, styles_do_not_depend_on_the_file)
{
    const char *const names[] = {variants[1]->name, "from_elsewhere"};
    int style[2][2];

    for (int k = 0; k < 2; k++) {
        struct rundir r = made_open(k ? "aaaa" : "bbbb");
        for (int v = k; v < 2; v++)
            for (int n = 0; n <= k; n++)
                for (int seq = 8; seq <= 16; seq += 8) {
                    const struct key_row key = key_of(&r, names[n], backends[0]->name, seq, 0);
                    put_latency(&r, &key, 100, 1, 1);
                }
        if (!k) {
            const struct key_row key = key_of(&r, names[1], backends[0]->name, 8, 0);
            put_latency(&r, &key, 100, 1, 1);
        }
        struct plot p = plot_of(&r, "latency-seq");
        cr_assert_eq(p.series.n, 2);
        for (int n = 0; n < 2; n++)
            for (int i = 0; i < p.series.n; i++)
                if (strcmp(p.series.v[i].text, names[n]) == 0)
                    style[k][n] = p.series.v[i].style;
    }
    NUMBERS({style[0][0], 1}, {style[1][0], 1}, {style[0][1], style[1][1]});
    for (int v = 0; variants[v]; v++)
        cr_expect_neq(style[0][1], v, "an unknown name takes the place of a known one");
}

/* Only what differs between the series of one variant is named. */
Test(plot, series_are_named_by_what_differs)
{
    struct rundir r = made_open("aaaa");
    for (int seq = 8; seq <= 16; seq += 8)
        for (int kind = MEM_HIDDEN; kind <= MEM_KV; kind++) {
            struct key_row k = key_of(&r, variants[1]->name, backends[0]->name, seq, 8);
            text_put(k.mem_kind, TEXT_SIZE, mem_kind_name[kind]);
            k.clip = 16;
            put_latency(&r, &k, seq * 100.0 + kind, 1, 1);
        }
    struct plot p = plot_of(&r, "latency-seq");
    cr_assert_eq(p.series.n, 2);
    for (int i = 0; i < 2; i++) {
        HAS(p.series.v[i].text, mem_kind_name[MEM_HIDDEN + i]);
        cr_expect_not(strstr(p.series.v[i].text, "clip"), "%s", p.series.v[i].text);
        cr_expect_eq(p.series.v[i].style, 1, "of the variant");
        NUMBERS({p.series.v[i].dash, i}, {p.series.v[i].marker, i});
        cr_expect_eq(p.series.v[i].colour, i, "of one variant, the kinds have colours");
    }
}

Test(plot, rows_without_times_are_no_points)
{
    struct rundir r = made_open("aaaa");
    for (int seq = 8; seq <= 32; seq *= 2) {
        struct key_row k = key_of(&r, variants[0]->name, backends[0]->name, seq, 0);
        if (seq == 16)
            text_put(k.status, TEXT_SIZE, row_status_name[ROW_WRONG]);
        put_latency(&r, &k, seq, 1, 1);
    }
    struct plot p = plot_of(&r, "latency-seq");
    cr_expect_eq(p.n, 2);
}

Test(plot, nothing_to_show_has_a_reason)
{
    struct rundir r = made_open("aaaa");
    put_env(&r, I64_EMPTY);
    for (int i = 0; i < figure_count; i++) {
        struct plot p = must_plot(r.path, figures[i].name);
        cr_expect_eq(p.n, 0, "%s", figures[i].name);
        cr_expect_gt(strlen(p.why), 10, "%s says nothing", figures[i].name);
    }
}

Test(plot, memory_is_stacked_without_gaps)
{
    struct rundir r = made_open("aaaa");
    const struct key_row k = key_of(&r, variants[0]->name, backends[0]->name, 64, 64);
    struct memory_row m = ROW_OF(memory, MEMORY, &k);
    m.weights_bytes = 100;
    m.scores_bytes = 20;
    m.memory_state_bytes = 0;
    m.backend_scratch_bytes = 3;
    m.arena_peak_bytes = 123;
    made_write(&r, TABLE_MEMORY, &m);
    m.seq_tokens = 8; /* smaller: not shown */
    made_write(&r, TABLE_MEMORY, &m);
    m.seq_tokens = 1024; /* larger, but not run */
    text_put(m.status, TEXT_SIZE, row_status_name[ROW_FAILED]);
    made_write(&r, TABLE_MEMORY, &m);
    struct plot p = plot_of(&r, "memory-parts");
    cr_assert_eq(p.n, 3, "parts without bytes are not boxes");
    double end = 0;
    for (int i = 0; i < p.n; i++) {
        NUMBERS({p.point[i].low, end}, {p.point[i].high - p.point[i].low, p.point[i].y});
        end = p.point[i].high;
    }
    cr_expect_eq(end, 123);
}

/* The page has room for a limited number of panels; a late bar of an early panel is still drawn. */
Test(plot, memory_says_what_has_no_room)
{
    enum { PANELS = 25 };
    struct rundir r = made_open("aaaa");
    for (int i = 0; i <= PANELS; i++) {
        struct key_row k = key_of(&r, variants[0]->name, i < PANELS ? "early" : "late", 64, 64);
        snprintf(k.workload, TEXT_SIZE, "work%d", i % PANELS);
        struct memory_row m = ROW_OF(memory, MEMORY, &k);
        m.weights_bytes = m.arena_peak_bytes = 100;
        made_write(&r, TABLE_MEMORY, &m);
    }
    struct plot p = plot_of(&r, "memory-parts");
    cr_expect_eq(p.n, PANELS);
    HAS(point_at(&p, 0, 0, 0, 0, 1)->label, "late");
    HAS(p.why, "1 more shape");
}

/* Lines of two points say little where there are many: those of three are drawn. */
Test(plot, many_short_lines_make_room)
{
    enum { SHORT = 9 };
    struct rundir r;

    for (int n = SHORT - 1; n <= SHORT; n++) {
        r = made_open("aaaa");
        for (int i = 0; i < n; i++)
            for (int seq = 64; seq <= (i ? 128 : 256); seq *= 2) {
                struct key_row k = key_of(&r, variants[0]->name, "one", seq, 0);
                snprintf(k.workload, TEXT_SIZE, "work%d", i);
                put_latency(&r, &k, seq, 1, 1);
            }
        struct plot p = plot_of(&r, "latency-seq");
        NUMBERS_OF(p.why, {p.rows.n, n == SHORT ? 1 : n},
                   {strstr(p.why, "8 shapes with fewer than three") != NULL, n == SHORT});
    }
}

/* One line of the table is one point, whatever characters the names contain. */
Test(plot, names_do_not_break_the_table)
{
    struct rundir r = made_open("aaaa");
    for (int seq = 8; seq <= 16; seq += 8) {
        const struct key_row k = key_of(&r, "name", backends[0]->name, seq, 0);
        put_latency(&r, &k, seq, 1, 1);
    }
    struct plot p = plot_of(&r, "latency-seq");
    text_put(p.series.v[0].text, PLOT_TEXT, "two\nlines,\r\"one\" name");
    char *const csv = PRINTED(f, plot_print_csv(f, &p));
    cr_expect_eq(count_in(csv, "\n"), p.n + 1);
    HAS(csv, ",two lines one name,");
}

Test(plot, roofline_has_points_and_ceilings)
{
    struct rundir r = make_grid();
    struct plot p = must_plot(r.path, "roofline");
    int points = 0, ceilings = 0;
    for (int i = 0; i < p.n; i++) {
        const struct plot_point *const a = &p.point[i];
        points += a->kind == 0;
        ceilings += a->kind != 0;
        if (a->kind == 0) { /* 8 flop per ns over 100 bytes; from 8192 to 524288 ns */
            cr_expect_float_eq(a->y, 8, 1e-9);
            cr_expect(a->x > 8 * 8191 / 100.0 && a->x < 8 * 524289 / 100.0, "x is %g", a->x);
        } else {
            cr_expect_float_eq(a->y, a->kind == 1 ? 50 : 30, 1e-9);
        }
    }
    cr_expect_eq(points, 24);
    cr_expect_eq(ceilings, 2, "what was not measured has no line");
}

Test(plot, roofline_of_a_machine_alone)
{
    struct rundir r = made_open("aaaa");
    struct plot p = plot_of(&r, "roofline");
    NUMBERS({p.n, 2}, {p.rows.n * p.columns.n, 1});
    for (int i = 0; i < p.n; i++)
        cr_expect_neq(p.point[i].kind, 0);
}

Test(plot, backends_are_relative_to_the_base)
{
    struct rundir r = make_grid();
    struct plot p = must_plot(r.path, "backends");
    cr_assert_eq(p.n, 24);
    cr_assert_eq(p.series.n, 2);
    HAS(p.series.v[0].text, "(base)");
    for (int i = 0; i < p.n; i++) {
        const struct plot_point *const a = &p.point[i];
        cr_expect_float_eq(a->y, a->series == 0 ? 1 : 0.5, 1e-12);
        cr_expect_eq(isnan(a->low) && isnan(a->high), a->series == 0, "the base has no interval");
        if (a->series == 1) {
            cr_expect_lt(a->low, 0.5 * 0.9);
            cr_expect_gt(a->high, 0.5 * 1.1);
        }
    }
}

/* The window takes 500 times as long as the memory, and 250 times its arithmetic. */
Test(plot, eval_speed_compares_with_the_window)
{
    struct rundir r = made_open("aaaa");
    for (int mem = 800; mem <= 1800; mem += 1000)
        for (int kind = 0; kind < 2; kind++) {
            struct key_row k =
                key_of(&r, variants[2 * kind]->name, usual[0] ? usual[0]->name : "one", 1, mem);
            text_put(k.workload, TEXT_SIZE, workload_name[WORK_DECODE]);
            text_put(k.mem_kind, TEXT_SIZE, mem_kind_name[kind ? MEM_KV : MEM_RECOMPUTE]);
            put_latency(&r, &k, kind ? 2e6 : 1e9, kind ? 4 : 1000, 1);
        }
    struct plot p = plot_of(&r, "eval-speed");
    NUMBERS({p.rows.n, 2}, {p.series.n, 3});
    int kinds[4] = {0};
    for (int i = 0; i < p.n; i++) {
        const struct plot_point *const a = &p.point[i];
        kinds[a->kind]++;
        if (a->kind == 1)
            cr_expect_float_eq(a->y, 500, 1e-9);
        if (a->kind == 2)
            cr_expect_float_eq(a->y, 250, 1e-9);
        if (a->kind == 3 && a->x == 1800)
            cr_expect_eq(a->y, 773);
    }
    NUMBERS({kinds[0], 4}, {kinds[1], 2}, {kinds[2], 2}, {kinds[3], 4});
}

Test(plot, rows_without_lengths_are_no_points)
{
    struct memory_row m = memory_row_empty();

    struct rundir r = made_open("aaaa");
    for (int cut = 0; cut < 3; cut++) {
        struct key_row k = key_of(&r, variants[0]->name, "one", 4, 800);
        text_put(k.workload, TEXT_SIZE, workload_name[WORK_DECODE]);
        text_put(k.mem_kind, TEXT_SIZE, mem_kind_name[MEM_KV]);
        k.seq_tokens = cut == 0 ? I64_EMPTY : 4;
        k.batch_size = cut == 1 ? I64_EMPTY : 4;
        k.mem_tokens = cut == 2 ? I64_EMPTY : 800;
        put_latency(&r, &k, 1e6, 10, 1);
        row_set_key(&tables[TABLE_MEMORY], &m, &k);
        m.arena_peak_bytes = m.weights_bytes = 100;
        made_write(&r, TABLE_MEMORY, &m);
    }
    struct plot p = plot_of(&r, "eval-speed");
    cr_expect_eq(p.n, 0);
    p = must_plot(r.path, "memory-parts");
    cr_expect_eq(p.n, 1, "the only shape that is known");
}

/* Each row is compared with the window of its own shape; if there are two, with none. */
Test(plot, eval_speed_compares_one_shape_with_itself)
{
    struct rundir r = made_open("aaaa");
    for (int i = 0; i < 2 * 2 * 3; i++) {
        const int threads = 1 + i / 6, mem = i / 3 % 2 ? 800 : 400, kind = i % 3;
        struct key_row k = key_of(&r, variants[kind]->name, "one", 1, mem);
        text_put(k.workload, TEXT_SIZE, workload_name[WORK_DECODE]);
        text_put(k.mem_kind, TEXT_SIZE, mem_kind_name[kind == 2 ? MEM_KV : MEM_RECOMPUTE]);
        k.threads = threads;
        put_latency(&r, &k, kind == 2 ? 1e6 : 1e9 / threads + kind, 10, 1);
    }
    struct plot p = plot_of(&r, "eval-speed");
    double slower[5], low = INFINITY, high = 0;
    int n = 0;
    cr_expect_eq(p.series.n, 3 * 2 + 1, "threads are told apart");
    for (int i = 0; i < p.n; i++)
        if (p.point[i].kind == 1 && n < 5)
            slower[n++] = p.point[i].y;
    cr_assert_eq(n, 4, "of two lengths each");
    for (int i = 0; i < n; i++) {
        low = fmin(low, slower[i]);
        high = fmax(high, slower[i]);
    }
    NUMBERS({high, 1000, 1e-9}, {low, 500, 1e-9});
}

/* One length is no curve. */
Test(plot, eval_speed_of_one_length)
{
    struct rundir r = made_open("aaaa");
    for (int kind = 0; kind < 2; kind++) {
        struct key_row k = key_of(&r, variants[2 * kind]->name, "one", 1, 800);
        text_put(k.workload, TEXT_SIZE, workload_name[WORK_DECODE]);
        text_put(k.mem_kind, TEXT_SIZE, mem_kind_name[kind ? MEM_KV : MEM_RECOMPUTE]);
        put_latency(&r, &k, kind ? 2e6 : 1e9, 10, 1);
    }
    struct plot p = plot_of(&r, "eval-speed");
    cr_expect_eq(p.n, 0);
    HAS(p.why, "fewer than two context lengths");
}

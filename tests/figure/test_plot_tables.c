/* SPDX-License-Identifier: MIT
 *
 * Figures of perplexity, training and changes: tables that are not of latencies. */
#include "tests/support/figure_rows.h"

TestSuite(plot_tables, .init = folder_make, .fini = folder_remove, .timeout = 240);

Test(plot_tables, perplexity_marks_what_nothing_beats)
{
    static const double ppl[] = {5, 4, 4.5}, speed[] = {1000, 100, 90};
    struct rundir r = made_open("aaaa");
    for (int i = 0; i < 3; i++) {
        const struct key_row k = key_of(&r, variants[0]->name, backends[0]->name, 32, 64 * i);
        struct perplexity_row row = ROW_OF(perplexity, PERPLEXITY, &k);
        row.ppl = ppl[i];
        row.tokens_per_s = speed[i];
        row.ppl_floor = 1.76;
        made_write(&r, TABLE_PERPLEXITY, &row);
    }
    struct plot p = plot_of(&r, "perplexity-time");
    cr_expect_eq(p.n, 5);
    cr_expect_str_eq(point_at(&p, 0, 0, 0, 0, 10000)->label, "64");
    NUMBERS({point_at(&p, 0, 0, 0, 1, 1000)->y, 5}, {point_at(&p, 0, 0, 0, 1, 10000)->y, 4});
    p = must_plot(r.path, "perplexity-bytes");
    cr_expect_eq(p.n, 0, "no row of memory.csv is of this model");
    p = must_plot(r.path, "perplexity-mem");
    NUMBERS({p.n, 3}, {point_at(&p, 0, 0, 0, 0, 64)->z, 1.76});
}

/* A perplexity of one checkpoint for each of four, at two values of a choice and two lengths. */
static void put_scored(struct rundir *r, size_t choice, const char *const values[2])
{
    *r = made_open("aaaa");
    for (int i = 0; i < 4; i++) {
        const struct key_row k = key_of(r, "exit", backends[0]->name, 32, 64 * (i / 2));
        struct perplexity_row row = ROW_OF(perplexity, PERPLEXITY, &k);
        text_put((char *)&row + choice, TEXT_SIZE, values[i % 2]);
        text_put(row.checkpoint, LINE_SIZE, "m.safetensors");
        row.ppl = 4 + i;
        row.tokens_per_s = 1000 * (1 + i);
        made_write(r, TABLE_PERPLEXITY, &row);
    }
    put_env(r, 1);
}

/* One checkpoint at several thresholds, or in several element types, is one line, named by these;
 * of several lengths, too. */
Test(plot_tables, perplexity_of_one_checkpoint_is_a_curve)
{
    static const struct {
        size_t choice;
        const char *values[2], *labels[3];
    } curves[] = {{offsetof(struct perplexity_row, exit_tau),
                   {"0.2", "0.5"},
                   {"0, 0.2", "0, 0.5", "64, 0.5"}},
                  {offsetof(struct perplexity_row, dtype),
                   {"f32", "bf16"},
                   {"0, f32", "0, bf16", "64, bf16"}}};

    for (size_t i = 0; i < ARRAY_LEN(curves); i++) {
        struct rundir r;
        put_scored(&r, curves[i].choice, curves[i].values);
        struct plot p = must_plot(r.path, "perplexity-time");
        cr_expect_eq(p.series.n, 1);
        cr_expect_str_eq(point_at(&p, 0, 0, 0, 0, 1000)->label, curves[i].labels[0]);
        cr_expect_str_eq(point_at(&p, 0, 0, 0, 0, 500)->label, curves[i].labels[1]);
        cr_expect_str_eq(point_at(&p, 0, 0, 0, 0, 250)->label, curves[i].labels[2]);
        p = must_plot(r.path, "perplexity-mem");
        cr_expect_eq(p.series.n, 2);
        folder_remove();
        folder_make();
    }
}

Test(plot_tables, curves_and_changes_come_from_their_files)
{
    struct train_row row = train_row_empty();

    text_put(row.variant, TEXT_SIZE, variants[2]->name);
    row.step = 10;
    row.loss_nats = 3;
    row.valid_nats = 2.5;
    made_table(in_folder("m.safetensors.train.csv"), TABLE_TRAIN, &row, 1);
    folder_put_text("kept.csv", "case,before,after,change_pct,ci95_low_pct,ci95_high_pct,verdict,"
                                "threshold_pct\n\"a, b\",old,new,-12.5,-13,-12,faster,2\n"
                                "exact,old,new,,,,same,\n");
    folder_put_text("other.csv", "some,thing\n1,2\n");
    cr_assert_eq(mkdir(in_folder("folder.csv"), 0700), 0, "other people's folders are passed over");
    struct plot p = must_plot(folder, "training");
    NUMBERS({p.n, 2}, {point_at(&p, 0, 0, 0, 0, 10)->y, 3}, {point_at(&p, 0, 0, 0, 1, 10)->y, 2.5});
    HAS(p.series.v[0].text, "(m)");
    p = must_plot(folder, "changes");
    cr_assert_eq(p.n, 1, "a row without times is not a change of time");
    NUMBERS({p.point[0].x, -12.5}, {p.point[0].z, 2});
    TEXTS({p.point[0].label, "a, b: new / old"}, {p.series.v[0].text, "faster"});
}

/* The arena is that of the row with the same model and shape, not of the next best. */
Test(plot_tables, perplexity_finds_its_bytes)
{
    struct rundir r = made_open("aaaa");
    for (int mem = 0; mem <= 64; mem += 64)
        for (int backend = 0; backend < 2; backend++) {
            const struct key_row k =
                key_of(&r, variants[0]->name, backend ? "other" : backends[0]->name, 32, mem);
            struct memory_row m = ROW_OF(memory, MEMORY, &k);
            m.arena_peak_bytes = 7;
            text_put(m.status, TEXT_SIZE, row_status_name[ROW_FAILED]);
            made_write(&r, TABLE_MEMORY, &m);
            text_put(m.status, TEXT_SIZE, row_status_name[ROW_OK]);
            m.clamp_len = 16;
            made_write(&r, TABLE_MEMORY, &m);
            m.clamp_len = k.clamp_len;
            m.threads = k.threads + 1;
            made_write(&r, TABLE_MEMORY, &m);
            m.threads = k.threads;
            m.arena_peak_bytes = 1000 + mem + 100000 * backend;
            made_write(&r, TABLE_MEMORY, &m);
            struct perplexity_row row = ROW_OF(perplexity, PERPLEXITY, &k);
            row.ppl = 5 - mem / 64.0;
            if (!backend)
                made_write(&r, TABLE_PERPLEXITY, &row);
        }
    struct plot p = plot_of(&r, "perplexity-bytes");
    NUMBERS({point_at(&p, 0, 0, 0, 0, 1000)->y, 5}, {point_at(&p, 0, 0, 0, 0, 1064)->y, 4});
}

/* Rows of two variants at three lengths: what a filter removes is not drawn. */
Test(plot_tables, filters_choose_rows)
{
    const char *wanted[] = {"!variant:xl", "seq>=64"}, *nonsense[] = {"seq"};
    const struct names both = {.v = wanted, .n = 2}, bad = {.v = nonsense, .n = 1};
    const enum table_id id = TABLE_PERPLEXITY;
    struct plot_data d;
    struct rundir r = made_open("aaaa");
    for (int i = 0; i < 6; i++) {
        const struct key_row k =
            key_of(&r, i % 2 ? "xl" : "shaw", backends[0]->name, 32 << i / 2, 0);
        struct perplexity_row row = perplexity_row_empty();
        row_set_key(&tables[id], &row, &k);
        made_write(&r, id, &row);
    }
    put_env(&r, 1);
    MUST(plot_read(&d, r.path, &failure));
    cr_assert_eq(d.table[id].n, 6);
    cr_expect_eq(plot_filter(&d, &bad, &failure), E_USAGE);
    MUST(plot_filter(&d, &both, &failure));
    cr_assert_eq(d.table[id].n, 2);
    const struct perplexity_row *const left = d.table[id].row;
    for (int i = 0; i < 2; i++) {
        cr_expect_str_eq(left[i].variant, "shaw");
        cr_expect_eq(left[i].seq_tokens, 64 << i);
    }
    plot_data_free(&d);
}

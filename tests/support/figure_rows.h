/* SPDX-License-Identifier: MIT
 *
 * Rows with known numbers for figures, and the points that a figure makes of them. */
#pragma once

#include "harness/figure/figure.h"
#include "harness/plan/plan.h"
#include "run_folder.h"

static inline struct key_row key_of(const struct rundir *r, const char *variant,
                                    const char *backend, int seq, int mem)
{
    const struct made_case c = {variant, backend, "", seq, 0};
    struct key_row k = made_key(r, &c, "host");

    k.mem_tokens = mem;
    text_put(k.workload, TEXT_SIZE, workload_name[WORK_ATTN]);
    return k;
}

static inline void put_latency(struct rundir *r, const struct key_row *k, double ns, double flop,
                               double bytes)
{
    struct latency_row row = ROW_OF(latency, LATENCY, k);
    row.median_ns = ns;
    row.ci95_low_ns = 0.9 * ns;
    row.ci95_high_ns = 1.1 * ns;
    row.flop_count = flop;
    row.bytes_moved_min = bytes;
    row.gflop_per_s = flop / ns;
    made_write(r, TABLE_LATENCY, &row);
}

static inline void put_env(struct rundir *r, int64_t peak_threads)
{
    struct env_row env = env_row_empty();

    env.peak_threads = peak_threads;
    env.peak_flop_per_s_ref = 50e9;
    env.read_byte_per_s_dram = 30e9;
    MUST(rundir_env(r, &env, &failure));
    MUST(rundir_close(r, &failure));
}

/* Kept until the test ends. */
static inline struct plot must_plot(const char *dir, const char *name)
{
    struct plot_data d;
    struct plot p = {0};

    MUST(plot_read(&d, dir, &failure));
    MUST(plot_make(&p, plot_figure(name), &d, &failure));
    plot_data_free(&d);
    kept_copy(&p, sizeof(p));
    return p;
}

/* Of the rows of a study, in the test's folder. */
static inline struct plot study_plot(const struct study_row *row, size_t n, const char *name)
{
    made_table(in_folder(tables[TABLE_STUDY].file), TABLE_STUDY, row, n);
    return must_plot(folder, name);
}

/* The next row, of a training that is judged. */
static inline struct study_row *study_put(struct study_row *all, size_t *n, const char *contender,
                                          const char *size, const char *corpus, int seed)
{
    struct study_row *const r = &all[(*n)++];

    *r = study_row_empty();
    snprintf(r->case_id, TEXT_SIZE, "%s %s %s %d", contender, size, corpus, seed);
    text_put(r->status, TEXT_SIZE, "ok");
    text_put(r->role, TEXT_SIZE, "final");
    text_put(r->contender, TEXT_SIZE, contender);
    text_put(r->size, TEXT_SIZE, size);
    text_put(r->corpus, LINE_SIZE, corpus);
    r->baseline = strcmp(contender, "base") == 0;
    r->seed = seed;
    return r;
}

/* Of a run that is over. */
static inline struct plot plot_of(struct rundir *r, const char *name)
{
    put_env(r, 1);
    return must_plot(r->path, name);
}

static inline const struct plot_point *point_at(const struct plot *p, int row, int column,
                                                int series, int kind, double x)
{
    for (int i = 0; i < p->n; i++) {
        const struct plot_point *const a = &p->point[i];
        if (a->row == row && a->column == column && a->series == series && a->kind == kind &&
            fabs(a->x - x) < 1e-9)
            return a;
    }
    cr_assert(false, "no point %d,%d series %d kind %d x %g", row, column, series, kind, x);
    return NULL;
}

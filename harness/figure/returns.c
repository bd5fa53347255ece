/* SPDX-License-Identifier: MIT
 *
 * The figure returns: how contenders of a study come to play its tasks. A line is the mean over the
 * seeds of the validations of their trainings, whose curves lie beside the weights. A contender that
 * lost seeds has no line: the others' mean says too much. */
#include "figure.h"

#include "harness/measure/study_verdict.h"
#include "harness/util/grow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KIND_RETURN, KIND_OPTIMUM, KIND_RANDOM, PANELS_ABREAST = 3 };

/* Validations of all seeds of a contender after the same number of steps. */
struct place {
    int panel, series;
    int64_t steps;
    double sum, least, most;
    int seeds;
};
struct places {
    struct place *v;
    int n;
};

static enum status add_return(struct places *all, struct place at, double value, struct err *e)
{
    for (int i = 0; i < all->n; i++) {
        struct place *const p = &all->v[i];
        if (p->panel != at.panel || p->series != at.series || p->steps != at.steps)
            continue;
        p->sum += value;
        p->least = fmin(p->least, value);
        p->most = fmax(p->most, value);
        p->seeds++;
        return OK;
    }
    if (GROW(all->v, all->n, e) != OK)
        return E_NOMEM;
    at.sum = at.least = at.most = value;
    at.seeds = 1;
    CHECK(all->v); /* GROW made room */
    all->v[all->n++] = at;
    return OK;
}

/* The curve of one training; a folder without it, such as one of tables alone, has no line. */
static enum status add_curve(struct places *all, const struct plot_data *d,
                             const struct study_row *r, struct place at, struct err *e)
{
    char path[FILE_PATH];
    struct rows curve;

    if (snprintf(path, sizeof(path), "%s/%s.%s", d->dir, r->checkpoint, tables[TABLE_TRAIN].file) >=
            FILE_PATH ||
        access(path, F_OK) != 0)
        return OK;
    enum status st = table_read(&curve, &tables[TABLE_TRAIN], path, e);
    const struct train_row *const v = curve.row;
    for (size_t i = 0; i < curve.n && st == OK; i++) {
        at.steps = v[i].tokens;
        if (isfinite(v[i].valid_return))
            st = add_return(all, at, v[i].valid_return, e);
    }
    rows_free(&curve);
    return st;
}

static bool is_played(const struct study_row *r, const struct study_verdicts *v)
{
    return strcmp(r->role, "final") == 0 && strcmp(r->status, row_status_name[ROW_OK]) == 0 &&
           isfinite(r->test_return) && study_entry_of(v, r)->lost == 0;
}

/* Panel and series of a row. */
static enum status find_place(struct place *at, struct plot *p, const struct study_row *r,
                              struct err *e)
{
    char name[2 * PLOT_TEXT];

    snprintf(name, sizeof(name), "%.90s %.90s", r->corpus, r->size);
    *at = (struct place){0};
    enum status st = plot_name(&at->panel, &p->rows, name, 0, e);
    if (st == OK)
        st = plot_name(&at->series, &p->series, r->contender, plot_variant_style(r->variant), e);
    if (st == OK && strcmp(r->contender, r->variant) != 0)
        text_put(p->series.v[at->series].kind, PLOT_TEXT, r->contender);
    return st;
}

/* What the best policy and actions at random earn, over all of the panel. */
static enum status add_bounds(struct plot *p, const struct places *all, const struct place *at,
                              const struct study_row *r, struct err *e)
{
    const double y[] = {[KIND_OPTIMUM] = r->optimum_return, [KIND_RANDOM] = r->random_return};
    double from = INFINITY, to = -INFINITY;
    enum status st = OK;

    for (int i = 0; i < all->n; i++)
        if (all->v[i].panel == at->panel) {
            from = fmin(from, (double)all->v[i].steps);
            to = fmax(to, (double)all->v[i].steps);
        }
    for (int k = KIND_OPTIMUM; k <= KIND_RANDOM && from <= to; k++)
        for (int end = 0; end < 2 && st == OK; end++) {
            struct plot_point a = plot_point_empty();
            a.row = at->panel;
            a.series = at->series;
            a.kind = k;
            a.x = end ? to : from;
            a.y = y[k];
            st = plot_add(p, &a, e);
        }
    return st;
}

/* A training that was interrupted has validated where the others have not: no mean. */
static bool all_seeds(const struct places *all, const struct place *t)
{
    int most = 0;

    for (int i = 0; i < all->n; i++)
        if (all->v[i].panel == t->panel && all->v[i].series == t->series)
            most = max_int(most, all->v[i].seeds);
    return t->seeds == most;
}

static enum status add_lines(struct plot *p, const struct places *all, struct err *e)
{
    enum status st = OK;

    for (int i = 0; i < all->n && st == OK; i++) {
        const struct place *const t = &all->v[i];
        struct plot_point a = plot_point_empty();
        if (!all_seeds(all, t))
            continue;
        a.row = t->panel;
        a.series = t->series;
        a.kind = KIND_RETURN;
        a.x = (double)t->steps;
        a.y = t->sum / t->seeds;
        a.low = t->least;
        a.high = t->most;
        st = plot_add(p, &a, e);
    }
    return st;
}

enum status study_returns(struct plot *p, const struct plot_data *d, struct err *e)
{
    const struct study_row *const r = d->table[TABLE_STUDY].row;
    const size_t n = d->table[TABLE_STUDY].n;
    struct places all = {0};
    struct place at;
    struct study_verdicts v;
    int column, bounded = 0, left_out = 0; /* panels so far */
    enum status st = study_verdicts_make(&v, &d->table[TABLE_STUDY], 0, e);

    if (st != OK)
        return st;
    st = plot_name(&column, &p->columns, "", 0, e);
    for (int i = 0; i < v.n; i++)
        left_out += v.v[i].is_task && v.v[i].lost > 0;
    for (size_t i = 0; i < n && st == OK; i++)
        if (is_played(&r[i], &v)) {
            st = find_place(&at, p, &r[i], e);
            if (st == OK)
                st = add_curve(&all, d, &r[i], at, e);
        }
    if (st == OK)
        st = add_lines(p, &all, e);
    for (size_t i = 0; i < n && st == OK; i++) {
        if (!is_played(&r[i], &v))
            continue;
        st = find_place(&at, p, &r[i], e);
        if (st == OK && at.panel == bounded) {
            st = add_bounds(p, &all, &at, &r[i], e);
            bounded++;
        }
    }
    free(all.v);
    study_verdicts_free(&v);
    if (p->n == 0)
        snprintf(p->why, sizeof(p->why),
                 "the folder has no study of tasks with its trainings (jobs/*.%s)",
                 tables[TABLE_TRAIN].file);
    else if (left_out > 0)
        snprintf(p->why, sizeof(p->why), "not drawn, because seeds have no score: %d", left_out);
    if (st == OK && p->n > 0)
        plot_wrap(p, PANELS_ABREAST);
    return st;
}

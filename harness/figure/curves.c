/* SPDX-License-Identifier: MIT
 *
 * Curves of a study: means over the seeds of what the final trainings of its contenders wrote on
 * their way, in files beside the weights. A contender that lost seeds has no line: the others' mean
 * says too much. */
#include "curves.h"

#include "harness/util/grow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What all seeds of a contender have at one x. */
struct place {
    int panel, series, kind;
    double x, sum, least, most;
    int seeds;
};
struct places {
    struct place *v;
    int n;
};

static void add_value(struct places *all, struct place at, double value)
{
    for (int i = 0; i < all->n; i++) {
        struct place *const p = &all->v[i];
        if (p->panel != at.panel || p->series != at.series || p->kind != at.kind || p->x != at.x)
            continue;
        p->sum += value;
        p->least = fmin(p->least, value);
        p->most = fmax(p->most, value);
        p->seeds++;
        return;
    }
    GROW_SMALL(all->v, all->n);
    at.sum = at.least = at.most = value;
    at.seeds = 1;
    CHECK(all->v); /* GROW made room */
    all->v[all->n++] = at;
}

/* The curve of one training; a folder without it, such as one of tables alone, has no line. */
static enum status add_curve(struct places *all, const struct plot_data *d,
                             const struct study_row *r, const struct curve_reader *c,
                             struct place at, struct err *e)
{
    char path[FILE_PATH];
    struct rows curve;

    if (snprintf(path, sizeof(path), "%s/%s.%s", d->dir, r->checkpoint, tables[TABLE_TRAIN].file) >=
            FILE_PATH ||
        access(path, F_OK) != 0)
        return OK;
    TRY(table_read(&curve, &tables[TABLE_TRAIN], path, e));
    const struct train_row *const v = curve.row;
    for (size_t i = 0; i < curve.n; i++)
        for (at.kind = 0; at.kind < c->kinds; at.kind++) {
            const double value = c->value(&v[i], at.kind);
            at.x = c->x(&v[i]);
            if (isfinite(value))
                add_value(all, at, value);
        }
    rows_free(&curve);
    return OK;
}

bool study_is_followed(const struct study_row *r, const struct study_verdicts *v, bool tasks)
{
    return strcmp(r->role, "final") == 0 && strcmp(r->status, row_status_name[ROW_OK]) == 0 &&
           study_entry_of(v, r)->is_task == tasks && study_entry_of(v, r)->lost == 0;
}

const char *study_unit(const struct plot_data *d)
{
    const struct study_row *const r = d->table[TABLE_STUDY].row;
    const char *unit = "";

    for (size_t i = 0; i < d->table[TABLE_STUDY].n; i++)
        if (*r[i].unit && *unit && strcmp(r[i].unit, unit) != 0)
            return "token";
        else if (*r[i].unit)
            unit = r[i].unit;
    return *unit ? unit : "token";
}

int study_panel(struct plot *p, const struct study_row *r)
{
    char name[2 * PLOT_TEXT];

    snprintf(name, sizeof(name), "%.90s %.90s", r->corpus, r->size);
    return plot_name(&p->rows, name, 0);
}

int study_series(struct plot *p, const struct study_row *r)
{
    const int series = plot_name(&p->series, r->contender, plot_variant_style(r->variant));

    if (strcmp(r->contender, r->variant) != 0)
        text_put(p->series.v[series].kind, PLOT_TEXT, r->contender);
    return series;
}

/* A training that was interrupted has written where the others have not: no mean. */
static bool all_seeds(const struct places *all, const struct place *t)
{
    int most = 0;

    for (int i = 0; i < all->n; i++)
        if (all->v[i].panel == t->panel && all->v[i].series == t->series &&
            all->v[i].kind == t->kind)
            most = max_int(most, all->v[i].seeds);
    return t->seeds == most;
}

static void add_lines(struct plot *p, const struct places *all)
{
    for (int i = 0; i < all->n; i++) {
        const struct place *const t = &all->v[i];
        struct plot_point a = plot_point_empty();
        if (!all_seeds(all, t))
            continue;
        a.row = t->panel;
        a.series = t->series;
        a.kind = t->kind;
        a.x = t->x;
        a.y = t->sum / t->seeds;
        a.low = t->least;
        a.high = t->most;
        plot_add(p, &a);
    }
}

enum status study_curves(struct plot *p, const struct plot_data *d, const struct study_verdicts *v,
                         const struct curve_reader *c, struct err *e)
{
    const struct study_row *const r = d->table[TABLE_STUDY].row;
    struct places all = {0};
    enum status st = OK;
    int left_out = 0;

    plot_one_column(p);
    for (int i = 0; i < v->n; i++)
        left_out += v->v[i].is_task == c->tasks && v->v[i].lost > 0;
    for (size_t i = 0; i < d->table[TABLE_STUDY].n && st == OK; i++)
        if (study_is_followed(&r[i], v, c->tasks))
            st = add_curve(
                &all, d, &r[i], c,
                (struct place){.panel = study_panel(p, &r[i]), .series = study_series(p, &r[i])},
                e);
    add_lines(p, &all);
    if (p->n > 0 && left_out > 0)
        snprintf(p->why, sizeof(p->why), "not drawn, because seeds have no score: %d", left_out);
    free(all.v);
    return st;
}

/* SPDX-License-Identifier: MIT
 *
 * The figure returns: how contenders of a study come to play its tasks. A line is the mean over the
 * seeds of the validations of their trainings. */
#include "curves.h"

#include <math.h>

enum { KIND_RETURN, KIND_OPTIMUM, KIND_RANDOM, PANELS_ABREAST = 3 };

static double steps_of(const struct train_row *r) { return (double)r->tokens; }

static double return_of(const struct train_row *r, int kind)
{
    (void)kind;
    return r->valid_return;
}

/* What the best policy and actions at random earn, over all of the panel. */
static void add_bounds(struct plot *p, int panel, const struct study_row *r)
{
    const double y[] = {[KIND_OPTIMUM] = r->optimum_return, [KIND_RANDOM] = r->random_return};
    struct plot_point a = plot_point_empty();
    double from = INFINITY, to = -INFINITY;

    a.row = panel;
    for (int i = 0; i < p->n; i++)
        if (p->point[i].row == panel) {
            a.series = p->point[i].series;
            from = fmin(from, p->point[i].x);
            to = fmax(to, p->point[i].x);
        }
    for (a.kind = KIND_OPTIMUM; a.kind <= KIND_RANDOM && from <= to; a.kind++)
        for (int end = 0; end < 2; end++) {
            a.x = end ? to : from;
            a.y = y[a.kind];
            plot_add(p, &a);
        }
}

enum status study_returns(struct plot *p, const struct plot_data *d, struct err *e)
{
    static const struct curve_reader reader = {
        .tasks = true, .kinds = 1, .x = steps_of, .value = return_of};
    const struct study_row *const r = d->table[TABLE_STUDY].row;
    struct study_verdicts v = study_verdicts_make(&d->table[TABLE_STUDY], 0);
    int bounded = 0; /* panels so far */
    const enum status st = study_curves(p, d, &v, &reader, e);

    for (size_t i = 0; i < d->table[TABLE_STUDY].n && st == OK; i++)
        if (study_is_followed(&r[i], &v, true) && study_panel(p, &r[i]) == bounded)
            add_bounds(p, bounded++, &r[i]);
    study_verdicts_free(&v);
    if (p->n == 0)
        snprintf(p->why, sizeof(p->why),
                 "the folder has no study of tasks with its trainings (jobs/*.%s)",
                 tables[TABLE_TRAIN].file);
    if (st == OK && p->n > 0)
        plot_wrap(p, PANELS_ABREAST);
    return st;
}

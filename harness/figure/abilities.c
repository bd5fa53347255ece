/* SPDX-License-Identifier: MIT
 *
 * The figure abilities: contenders of a study against its generated texts. A square shows how far
 * the loss of answers has come from that without context to the floor, or the return of a task from
 * that of actions at random to the optimum. Texts without answers are left out, and contenders that
 * lost seeds: the others' mean says too much. */
#include "figure.h"
#include "harness/measure/study_verdict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KIND_CELL, KIND_CONTENDER, KIND_TEXT };
enum { REACHED, SHORT_OF_IT };

/* A name in the margin, the first time that it is met: of a line (y) or of a column (x). */
static enum status find_margin(double *at, struct plot *p, struct plot_names *names, int kind,
                               int row, const char *text, struct err *e)
{
    const int known = names->n;
    struct plot_point a = plot_point_empty();
    int i;
    enum status st = plot_name(&i, names, text, 0, e);

    *at = i;
    if (st != OK || names->n == known)
        return st;
    a.row = row;
    a.kind = kind;
    *(kind == KIND_CONTENDER ? &a.y : &a.x) = i;
    text_put(a.label, PLOT_TEXT, text);
    return plot_add(p, &a, e);
}

static enum status add_cell(struct plot *p, const struct study_entry *s, int row,
                            struct plot_names *contenders, struct plot_names *texts, struct err *e)
{
    const bool reached = study_reached(s);
    struct plot_point a = plot_point_empty();
    enum status st = find_margin(&a.y, p, contenders, KIND_CONTENDER, row, s->row->contender, e);

    if (st == OK)
        st = find_margin(&a.x, p, texts, KIND_TEXT, row, s->row->corpus, e);
    if (st == OK)
        st = plot_name(&a.series, &p->series, reached ? "reached" : "not reached",
                       reached ? REACHED : SHORT_OF_IT, e);
    if (st != OK)
        return st;
    a.row = row;
    a.kind = KIND_CELL;
    a.z = s->way.mean;
    a.low = s->way.least;
    a.high = s->way.most;
    snprintf(a.label, PLOT_TEXT, "%.2f", fabs(s->way.mean) < 0.005 ? 0 : s->way.mean);
    return plot_add(p, &a, e);
}

static bool is_cell(const struct study_entry *s) { return isfinite(s->way.mean) && s->lost == 0; }

/* The cells of one size. */
static enum status add_panel(struct plot *p, const struct study_verdicts *v, const char *size,
                             struct err *e)
{
    struct plot_names contenders = {0}, texts = {0};
    int row;
    enum status st = plot_name(&row, &p->rows, size, 0, e);

    for (int i = 0; i < v->n && st == OK; i++)
        if (is_cell(&v->v[i]) && strcmp(v->v[i].row->size, size) == 0)
            st = add_cell(p, &v->v[i], row, &contenders, &texts, e);
    free(contenders.v);
    free(texts.v);
    return st;
}

enum status study_abilities(struct plot *p, const struct plot_data *d, struct err *e)
{
    struct study_verdicts v;
    int column, left_out = 0;
    enum status st = study_verdicts_make(&v, &d->table[TABLE_STUDY], 0, e);

    if (st != OK)
        return st;
    st = plot_name(&column, &p->columns, "", 0, e);
    if (st == OK) /* the legend's order */
        st = plot_name(&column, &p->series, "reached", REACHED, e);
    for (int i = 0; i < v.n && st == OK; i++) {
        bool drawn = !is_cell(&v.v[i]);
        left_out += drawn && isfinite(v.v[i].way.mean);
        for (int k = 0; k < p->rows.n; k++)
            drawn = drawn || strcmp(p->rows.v[k].text, v.v[i].row->size) == 0;
        if (!drawn)
            st = add_panel(p, &v, v.v[i].row->size, e);
    }
    if (p->n == 0)
        snprintf(p->why, sizeof(p->why),
                 "the folder has no study of a generated text with answers, or of tasks");
    else if (left_out > 0)
        snprintf(p->why, sizeof(p->why), "not drawn, because seeds have no score: %d", left_out);
    study_verdicts_free(&v);
    return st;
}

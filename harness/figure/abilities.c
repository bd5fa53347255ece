/* SPDX-License-Identifier: MIT
 *
 * The figure abilities: contenders of a study against its generated texts. A square shows how far
 * the loss of answers has come from that without context to the floor, or the return of a task from
 * that of actions at random to the optimum. Texts without answers are left out, and contenders that
 * lost seeds: the others' mean says too much. */
#include "figure.h"
#include "harness/measure/study_verdict.h"

enum { KIND_CELL, KIND_CONTENDER, KIND_TEXT };
enum { REACHED, SHORT_OF_IT };

/* A name in the margin, the first time that it is met: of a line (y) or of a column (x). */
static int find_margin(struct plot *p, struct plot_names *names, int kind, int row,
                       const char *text)
{
    const int known = names->n, i = plot_name(names, text, 0);
    struct plot_point a = plot_point_empty();

    if (names->n == known)
        return i;
    a.row = row;
    a.kind = kind;
    *(kind == KIND_CONTENDER ? &a.y : &a.x) = i;
    text_put(a.label, PLOT_TEXT, text);
    plot_add(p, &a);
    return i;
}

static void add_cell(struct plot *p, const struct study_entry *s, int row,
                     struct plot_names *contenders, struct plot_names *texts)
{
    const bool reached = study_reached(s);
    struct plot_point a = plot_point_empty();

    a.y = find_margin(p, contenders, KIND_CONTENDER, row, s->row->contender);
    a.x = find_margin(p, texts, KIND_TEXT, row, s->row->corpus);
    a.series =
        plot_name(&p->series, reached ? "reached" : "not reached", reached ? REACHED : SHORT_OF_IT);
    a.row = row;
    a.kind = KIND_CELL;
    a.z = s->way.mean;
    a.low = s->way.least;
    a.high = s->way.most;
    snprintf(a.label, PLOT_TEXT, "%.2f", fabs(s->way.mean) < 0.005 ? 0 : s->way.mean);
    plot_add(p, &a);
}

static bool is_cell(const struct study_verdicts *v, const struct study_entry *s)
{
    return isfinite(s->way.mean) && s->lost == 0 && study_is_last(v, s);
}

/* The cells of one size. */
static void add_panel(struct plot *p, const struct study_verdicts *v, const char *size)
{
    struct plot_names contenders = {0}, texts = {0};
    const int row = plot_name(&p->rows, size, 0);

    for (int i = 0; i < v->n; i++)
        if (is_cell(v, &v->v[i]) && strcmp(v->v[i].row->size, size) == 0)
            add_cell(p, &v->v[i], row, &contenders, &texts);
    free(contenders.v);
    free(texts.v);
}

void study_abilities(struct plot *p, const struct plot_data *d)
{
    struct study_verdicts v = study_verdicts_make(&d->table[TABLE_STUDY], 0);
    int left_out = 0;

    plot_one_column(p);
    plot_name(&p->series, "reached", REACHED); /* the legend's order */
    for (int i = 0; i < v.n; i++) {
        bool drawn = !is_cell(&v, &v.v[i]);
        left_out += isfinite(v.v[i].way.mean) && v.v[i].lost > 0;
        for (int k = 0; k < p->rows.n; k++)
            drawn = drawn || strcmp(p->rows.v[k].text, v.v[i].row->size) == 0;
        if (!drawn)
            add_panel(p, &v, v.v[i].row->size);
    }
    plot_say_left_out(p, left_out, "seeds have no score");
    study_verdicts_free(&v);
}

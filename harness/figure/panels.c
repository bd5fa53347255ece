/* SPDX-License-Identifier: MIT
 *
 * Other arrangements of panels than a column for each backend. */
#include "figure.h"

#include <stdlib.h>
#include <string.h>

enum status plot_join_backends(struct plot *p, struct err *e)
{
    const bool alone = p->series.n == 1;
    struct plot_names series = {0}, columns = {0};
    int column;
    enum status st = plot_name(&column, &columns, alone ? p->series.v[0].text : "", 0, e);

    for (int i = 0; i < p->n && st == OK; i++) {
        const struct plot_name *const s = &p->series.v[p->point[i].series];
        const struct plot_name *const b = &p->columns.v[p->point[i].column];
        char name[2 * PLOT_TEXT + 2], kind[2 * PLOT_TEXT + 2];
        int at;
        snprintf(name, sizeof(name), "%s%s%s", alone ? "" : s->text, alone ? "" : " ", b->text);
        snprintf(kind, sizeof(kind), "%s %s", s->kind, b->text);
        st = plot_name(&at, &series, name, alone ? b->style : s->style, e);
        if (st != OK)
            break;
        if (!alone)
            text_put(series.v[at].kind, PLOT_TEXT, kind);
        p->point[i].series = at;
        p->point[i].column = column;
    }
    free(p->series.v);
    free(p->columns.v);
    p->series = series;
    p->columns = columns;
    return st;
}

enum status plot_case_panel(int *index, struct plot *p, const struct picked *k, int i,
                            struct err *e)
{
    const struct latency_row *const row = k->row[i];
    char model[PLOT_TEXT], shape[PLOT_TEXT], title[4 * PLOT_TEXT];

    plot_label(model, k, i, ROLE_MEMORY | ROLE_MODEL, NULL, true);
    plot_label(shape, k, i, ROLE_TASK | ROLE_SIZE | ROLE_CONDITION, NULL, false);
    snprintf(title, sizeof(title), "%s%s%s%s%s %s", row->variant, *model ? " " : "", model,
             *shape ? " " : "", shape, row->backend);
    for (int r = 0; r < p->rows.n; r++)
        if (strncmp(p->rows.v[r].text, title, PLOT_TEXT - 1) == 0) { /* no role tells it */
            snprintf(title, sizeof(title), "%s %s %.7s", row->variant, row->backend, row->case_id);
            break;
        }
    return plot_name(index, &p->rows, title, 0, e);
}

void plot_wrap(struct plot *p, int abreast)
{
    const struct plot_names panels = p->rows;

    p->rows = p->columns;
    p->columns = panels;
    for (int i = 0; i < panels.n; i++)
        p->columns.v[i].style = i;
    for (int i = 0; i < p->n; i++)
        p->point[i].column = p->point[i].row, p->point[i].row = 0;
    p->abreast = abreast;
}

/* SPDX-License-Identifier: MIT
 *
 * Other arrangements of panels than a column for each backend. */
#include "figure.h"

void plot_one_column(struct plot *p) { plot_name(&p->columns, "", 0); }

void plot_one_panel(struct plot *p)
{
    plot_name(&p->rows, "", 0);
    plot_one_column(p);
}

void plot_join_backends(struct plot *p)
{
    const bool alone = p->series.n == 1;
    struct plot_names series = {0}, columns = {0};
    const int column = plot_name(&columns, alone ? p->series.v[0].text : "", 0);

    for (int i = 0; i < p->n; i++) {
        const struct plot_name *const s = &p->series.v[p->point[i].series];
        const struct plot_name *const b = &p->columns.v[p->point[i].column];
        char name[2 * PLOT_TEXT + 2], kind[2 * PLOT_TEXT + 2];
        snprintf(name, sizeof(name), "%s%s%s", alone ? "" : s->text, alone ? "" : " ", b->text);
        snprintf(kind, sizeof(kind), "%s %s", s->kind, b->text);
        const int at = plot_name(&series, name, alone ? b->style : s->style);
        if (!alone)
            text_put(series.v[at].kind, PLOT_TEXT, kind);
        p->point[i].series = at;
        p->point[i].column = column;
    }
    free(p->series.v);
    free(p->columns.v);
    p->series = series;
    p->columns = columns;
}

int plot_case_panel(struct plot *p, const struct picked *k, int i)
{
    const struct latency_row *const row = k->row[i];
    char text[PLOT_TEXT], title[4 * PLOT_TEXT];

    text_put(title, sizeof(title), row->variant);
    plot_label(text, k, i, ROLE_MEMORY | ROLE_MODEL, NULL, true);
    text_join(title, sizeof(title), " ", text);
    plot_label(text, k, i, ROLE_TASK | ROLE_SIZE | ROLE_CONDITION, NULL, false);
    text_join(title, sizeof(title), " ", text);
    text_join(title, sizeof(title), " ", row->backend);
    for (int r = 0; r < p->rows.n; r++)
        if (strncmp(p->rows.v[r].text, title, PLOT_TEXT - 1) == 0) { /* no role tells it */
            snprintf(title, sizeof(title), "%s %s %.7s", row->variant, row->backend, row->case_id);
            break;
        }
    return plot_name(&p->rows, title, 0);
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

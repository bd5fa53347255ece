/* SPDX-License-Identifier: MIT
 *
 * Curves of training runs. */
#include "figure.h"

#include <string.h>

enum { KIND_LOSS, KIND_VALID, KIND_FLOOR };

static enum status add_row(struct plot *p, const struct train_row *r, int series, struct err *e)
{
    const double y[] = {[KIND_LOSS] = r->loss_nats,
                        [KIND_VALID] = r->valid_nats,
                        [KIND_FLOOR] = r->valid_floor_nats};
    enum status st = OK;

    for (int k = 0; k < (int)ARRAY_LEN(y) && st == OK; k++) {
        struct plot_point a = plot_point_empty();
        a.series = series;
        a.source = r;
        a.kind = k;
        a.x = (double)r->step;
        a.y = y[k];
        if (isfinite(a.y))
            st = plot_add(p, &a, e);
    }
    return st;
}

enum status training_curves(struct plot *p, const struct plot_data *d, struct err *e)
{
    enum status st = plot_one_panel(p, e);

    for (int i = 0; i < d->n_train && st == OK; i++) {
        const struct plot_train *const t = &d->train[i];
        const struct train_row *const v = t->rows.row;
        char name[3 * TEXT_SIZE];
        int series;
        if (t->rows.n == 0)
            continue;
        if (!*t->name)
            snprintf(name, sizeof(name), "%s", v->variant);
        else if (strncmp(v->variant, t->name, strlen(v->variant)) == 0)
            snprintf(name, sizeof(name), "%s", t->name);
        else
            snprintf(name, sizeof(name), "%s (%s)", v->variant, t->name);
        st = plot_name(&series, &p->series, name, plot_variant_style(v->variant), e);
        if (st == OK)
            text_put(p->series.v[series].kind, PLOT_TEXT, name + strlen(v->variant));
        for (size_t k = 0; k < t->rows.n && st == OK; k++)
            st = add_row(p, &v[k], series, e);
    }
    if (p->n == 0)
        snprintf(p->why, sizeof(p->why), "the folder has no curve of a training run (*.%s)",
                 tables[TABLE_TRAIN].file);
    return st;
}

/* SPDX-License-Identifier: MIT
 *
 * The figure "training": losses over steps, a line a contender of a study, or a line a training
 * where the folder has curves of single ones. */
#include "curves.h"

#include <string.h>

enum { KIND_LOSS, KIND_VALID, KIND_FLOOR, KINDS, PANELS_ABREAST = 3 };

static double step_of(const struct train_row *r) { return (double)r->step; }

static double loss_of(const struct train_row *r, int kind)
{
    return kind == KIND_LOSS    ? r->loss_nats
           : kind == KIND_VALID ? r->valid_nats
                                : r->valid_floor_nats;
}

/* Loss of what: a token, if they differ. */
static void name_loss(struct plot *p, const char *unit)
{
    char text[sizeof(p->y_title)];

    snprintf(text, sizeof(text), "loss (nats per %.60s)", unit);
    text_put(p->y_title, sizeof(p->y_title),
             p->y_title[0] && strcmp(p->y_title, text) != 0 ? "loss (nats per token)" : text);
}

/* ---- of a study --------------------------------------------------------------------------- */

static enum status add_study(struct plot *p, const struct plot_data *d, struct err *e)
{
    static const struct curve_reader reader = {.kinds = KINDS, .x = step_of, .value = loss_of};
    struct study_verdicts v = study_verdicts_make(&d->table[TABLE_STUDY], 0);
    const enum status st = study_curves(p, d, &v, &reader, e);

    name_loss(p, study_unit(d));
    study_verdicts_free(&v);
    if (st == OK && p->n > 0)
        plot_wrap(p, PANELS_ABREAST);
    return st;
}

/* ---- of single trainings ------------------------------------------------------------------ */

static void add_row(struct plot *p, const struct train_row *r, int series)
{
    for (int k = 0; k < KINDS; k++) {
        struct plot_point a = plot_point_empty();
        a.series = series;
        a.source = r;
        a.kind = k;
        a.x = step_of(r);
        a.y = loss_of(r, k);
        if (isfinite(a.y))
            plot_add(p, &a);
    }
}

static void add_trainings(struct plot *p, const struct plot_data *d)
{
    plot_one_panel(p);
    for (int i = 0; i < d->n_train; i++) {
        const struct plot_train *const t = &d->train[i];
        const struct train_row *const v = t->rows.row;
        char name[3 * TEXT_SIZE];
        if (t->rows.n == 0)
            continue;
        if (!*t->name)
            snprintf(name, sizeof(name), "%s", v->variant);
        else if (strncmp(v->variant, t->name, strlen(v->variant)) == 0)
            snprintf(name, sizeof(name), "%s", t->name);
        else
            snprintf(name, sizeof(name), "%s (%s)", v->variant, t->name);
        const int series = plot_name(&p->series, name, plot_variant_style(v->variant));
        text_put(p->series.v[series].kind, PLOT_TEXT, name + strlen(v->variant));
        for (size_t k = 0; k < t->rows.n; k++)
            add_row(p, &v[k], series);
        /* without its checkpoint the unit is that of the study beside it */
        name_loss(p, *t->unit ? t->unit : study_unit(d));
    }
}

enum status training_curves(struct plot *p, const struct plot_data *d, struct err *e)
{
    const bool study = d->n_train == 0 && d->table[TABLE_STUDY].n > 0;
    const enum status st = study ? add_study(p, d, e) : OK;

    if (!study)
        add_trainings(p, d);
    if (p->n == 0)
        snprintf(p->why, sizeof(p->why),
                 "the folder has no curve of a training run (*.%s, or those of a study in jobs/)",
                 tables[TABLE_TRAIN].file);
    return st;
}

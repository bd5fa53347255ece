/* SPDX-License-Identifier: MIT
 *
 * Figures of what trainings wrote on their way, in files beside the weights: "training", losses over
 * steps, and "returns", how contenders of a study come to play its tasks. Of a study, a line is the
 * mean over the seeds of a contender; one that lost seeds has no line: the others' mean says too
 * much. */
#include "figure.h"

#include "harness/measure/study_verdict.h"

enum { PANELS_ABREAST = 3 };

/* What is read of a row of a training: `kinds` values over x. NAN: it has none. */
struct curve_reader {
    bool tasks; /* of studies of tasks, else of texts */
    int kinds;
    double (*x)(const struct train_row *r);
    double (*value)(const struct train_row *r, int kind);
};

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

/* Is the row of a training that they follow? */
static bool study_is_followed(const struct study_row *r, const struct study_verdicts *v, bool tasks)
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

    snprintf(name, sizeof(name), "%.90s %.90s%s", r->corpus, r->size, study_budget_text(r).s);
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

/* The means over the seeds of each contender at its best rate, from the least to the most of them; a
 * row of panels for each text and size. p->why says how many lost seeds and are left out. */
static enum status study_curves(struct plot *p, const struct plot_data *d,
                                const struct study_verdicts *v, const struct curve_reader *c,
                                struct err *e)
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
    plot_say_left_out(p, left_out, "seeds have no score");
    free(all.v);
    return st;
}

/* ---- losses ------------------------------------------------------------------------------- */

enum { KIND_LOSS, KIND_VALID, KIND_FLOOR, KINDS };

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

static enum status add_study(struct plot *p, const struct plot_data *d, struct err *e)
{
    static const struct curve_reader reader = {.kinds = KINDS, .x = step_of, .value = loss_of};
    struct study_verdicts v = study_verdicts_make(&d->table[TABLE_STUDY], 0);
    const enum status st = study_curves(p, d, &v, &reader, e);

    name_loss(p, study_unit(d));
    study_verdicts_free(&v);
    plot_wrap(p, PANELS_ABREAST);
    return st;
}

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
    if (d->n_train == 0 && d->table[TABLE_STUDY].n > 0)
        return add_study(p, d, e);
    add_trainings(p, d);
    return OK;
}

/* ---- returns ------------------------------------------------------------------------------ */

enum { KIND_RETURN, KIND_OPTIMUM, KIND_RANDOM };

static double steps_of(const struct train_row *r) { return (double)r->tokens; }

static double return_of(const struct train_row *r, int kind) { return r->valid_return; }

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
    plot_wrap(p, PANELS_ABREAST);
    return st;
}

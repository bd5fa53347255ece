/* SPDX-License-Identifier: MIT
 *
 * The caption of a figure: what all its rows have in common, which machine and program measured
 * them, and when. A figure can then stand alone. */
#include "figure.h"

/* Roles that readers ask for; other choices of the model are named where they differ. */
enum { SHOWN = ROLE_TASK | ROLE_SIZE | ROLE_CONDITION | ROLE_MEMORY };

/* Columns with one of these values, or of these names, go without saying. */
static bool goes_without_saying(const struct column *c, const char *value)
{
    static const char *const names[] = {"d_head", "pin", "membind"}, *const values[] = {"hot"};
    bool is = !*value;

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        is = is || strcmp(c->name, names[i]) == 0;
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        is = is || strcmp(value, values[i]) == 0;
    return is;
}

static bool is_shown(const struct table *t, const struct column *c)
{
    if (t == &tables[TABLE_TRAIN])
        return strcmp(c->name, "backend") == 0 || strcmp(c->name, "threads") == 0;
    return plot_role(t, c) & SHOWN;
}

/* Does the column have one value in all rows that points were made from? */
static bool is_common(const struct plot *p, const struct column *c)
{
    const void *first = NULL;

    for (int i = 0; i < p->n; i++) {
        const void *const row = p->point[i].source;
        if (row && first && !plot_same_value(c, first, row))
            return false;
        first = first ? first : row;
    }
    return first;
}

/* Text and sizes of trainings that share them. */
static void say_what_was_trained(struct plot *p, const struct plot_data *d)
{
    bool same = d->n_train > 0;

    for (int i = 1; i < d->n_train; i++)
        same = same && strcmp(d->train[i].made_of, d->train[0].made_of) == 0;
    if (same)
        text_join(p->subject, sizeof(p->subject), ", ", d->train[0].made_of);
}

static void say_what(struct plot *p, const struct plot_data *d)
{
    const struct table *const t = &tables[p->figure->table];
    const void *row = NULL;
    bool reference = false;

    for (int i = 0; i < p->n; i++)
        row = row ? row : p->point[i].source;
    for (int k = 0; row && k < t->n; k++) {
        char value[PLOT_TEXT];
        if (!is_shown(t, &t->columns[k]) || !is_common(p, &t->columns[k]))
            continue;
        plot_value(value, sizeof(value), t, row, &t->columns[k]);
        if (!goes_without_saying(&t->columns[k], value))
            text_join(p->subject, sizeof(p->subject), ", ", value);
    }
    if (p->figure->table == TABLE_TRAIN)
        say_what_was_trained(p, d);
    for (int i = 0; i < d->n_runs; i++)
        reference = reference || plot_leaves_out_reference(&d->runs[i], p->figure->table);
    if (row && (reference || plot_leaves_out_reference(d, p->figure->table)))
        text_join(p->subject, sizeof(p->subject), "; ", "without the reference");
}

static void say_where(struct plot *p, const struct plot_data *d)
{
    const struct env_row *const env = d->table[TABLE_ENV].row;
    char text[LINE_SIZE];

    if (d->table[TABLE_ENV].n == 0)
        return;
    text_join(p->where, sizeof(p->where), ", ", env->cpu_model);
    snprintf(text, sizeof(text), "%.10s", env->started_at_utc);
    text_join(p->where, sizeof(p->where), ", ", text);
    /* A tree that was changed is that of no commit, but comes after one. */
    snprintf(text, sizeof(text), "bench %s%s%.12s", env->bench_version,
             !env->git_commit[0]   ? ""
             : env->git_dirty == 1 ? " after "
                                   : " ",
             env->git_commit);
    text_join(p->where, sizeof(p->where), ", ", env->bench_version[0] ? text : "");
}

void plot_caption(struct plot *p, const struct plot_data *d)
{
    if (!p->subject[0])
        say_what(p, d);
    if (!p->where[0])
        say_where(p, d);
}

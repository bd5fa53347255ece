/* SPDX-License-Identifier: MIT
 *
 * Figures of bars: memory stacked by part, and backends side by side. */
#include "figure.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { PANELS_MAX = 24, PANELS_ABREAST = 3, GROUPS_ABREAST = 8 };

static const char *const lengths[] = {"seq_tokens", "mem_tokens", NULL};

/* "seq 128 mem 0", appended to a text. */
static void add_lengths(char *buf, size_t size, const struct table *t, const void *row)
{
    for (int k = 0; lengths[k]; k++) {
        const size_t n = strlen(buf);
        char text[PLOT_TEXT];
        plot_value(text, sizeof(text), t, row, plot_column(t, lengths[k]));
        snprintf(buf + n, size - n, "%s%s", n ? " " : "", text);
    }
}

/* The remark names bars that do not fit. */
static void remark_on_panels(struct plot *p, int panels)
{
    if (panels > PANELS_MAX)
        snprintf(p->why, sizeof(p->why),
                 "%d more shape%s not drawn  -> select shapes with --filter", panels - PANELS_MAX,
                 panels - PANELS_MAX == 1 ? " is" : "s are");
}

/* ---- memory ------------------------------------------------------------------------------- */

static const struct {
    const char *name, *column;
} parts[] = {
    {"weights", "weights_bytes"},
    {"activations", "activations_bytes"},
    {"memory state", "memory_state_bytes"},
    {"scores", "scores_bytes"},
    {"relative positions", "rel_pos_bytes"},
    {"gradients", "gradients_bytes"},
    {"optimiser", "optimizer_bytes"},
    {"backend scratch", "backend_scratch_bytes"},
};

static double extent(const struct memory_row *m)
{
    return ((double)m->seq_tokens + (double)m->mem_tokens) * (double)m->batch_size *
           (double)m->layers;
}

/* It has bytes, and no row of the same workload has a larger shape. */
static bool is_largest(const void *row, const struct plot_data *d, const void *unused)
{
    const struct memory_row *const m = row, *const v = d->table[TABLE_MEMORY].row;
    (void)unused;

    for (size_t i = 0; i < d->table[TABLE_MEMORY].n; i++)
        if (strcmp(v[i].status, row_status_name[ROW_OK]) == 0 &&
            v[i].arena_peak_bytes != I64_EMPTY && strcmp(v[i].workload, m->workload) == 0 &&
            extent(&v[i]) > extent(m))
            return false;
    return m->arena_peak_bytes != I64_EMPTY;
}

/* One bar: its parts end to end. */
static enum status add_bar(struct plot *p, const void *m, int row, int bar, const char *label,
                           struct err *e)
{
    double from = 0;
    enum status st = OK;

    for (size_t k = 0; k < ARRAY_LEN(parts) && st == OK; k++) {
        struct plot_point point = plot_point_empty();
        point.row = row;
        point.source = m;
        point.x = bar;
        point.y = plot_number(&tables[TABLE_MEMORY], m, parts[k].column);
        if (!(point.y > 0))
            continue;
        point.low = from;
        point.high = from += point.y;
        text_put(point.label, PLOT_TEXT, label);
        st = plot_name(&point.series, &p->series, parts[k].name, (int)k, e);
        if (st == OK)
            st = plot_add(p, &point, e);
    }
    return st;
}

enum status memory_parts(struct plot *p, const struct plot_data *d, struct err *e)
{
    struct picked k;
    int column, bars[PANELS_MAX] = {0};
    enum status st = plot_pick(&k, d, TABLE_MEMORY, is_largest, NULL, e);

    if (st == OK)
        st = plot_name(&column, &p->columns, "", 0, e);
    for (int i = 0; i < k.n && st == OK; i++) {
        const struct memory_row *const m = k.row[i];
        char text[PLOT_TEXT], label[3 * PLOT_TEXT];
        int row;
        text_put(label, sizeof(label), m->workload);
        add_lengths(label, sizeof(label), k.table, m);
        st = plot_name(&row, &p->rows, label, 0, e);
        if (st != OK || row >= PANELS_MAX)
            continue; /* a later bar may belong to a panel that is drawn */
        plot_label(text, &k, i, ROLE_SIZE | ROLE_CONDITION | ROLE_MEMORY | ROLE_MODEL, NULL, true);
        snprintf(label, sizeof(label), "%s %s%s%s", m->variant, m->backend, *text ? " " : "", text);
        st = add_bar(p, m, row, bars[row]++, label, e);
    }
    if (p->n == 0)
        snprintf(p->why, sizeof(p->why), "memory.csv has no row with bytes");
    else
        remark_on_panels(p, p->rows.n);
    free(k.row);
    return st;
}

/* ---- backends ----------------------------------------------------------------------------- */

static bool has_time(const void *row, const struct plot_data *d, const void *unused)
{
    (void)d, (void)unused;
    return ((const struct latency_row *)row)->median_ns > 0;
}

/* The backend to compare with: --base, else the first of the program's list that was measured and
 * is not the reference. */
static const char *base_of(const struct plot_data *d, const struct picked *k)
{
    const char *best = "";
    int style = INT_MAX;

    for (int i = 0; i < k->n; i++) {
        const char *const name = ((const struct latency_row *)k->row[i])->backend;
        if (!plot_is_reference(name) && plot_backend_style(name) < style) {
            best = name;
            style = plot_backend_style(name);
        }
    }
    return d->base ? d->base : best;
}

/* Panel and group of bars that a row belongs to. */
struct bar_place {
    char panel[3 * PLOT_TEXT], group[2 * PLOT_TEXT];
};

static void find_place(struct bar_place *b, const struct picked *k, int i)
{
    const struct latency_row *const row = k->row[i];
    char text[PLOT_TEXT];

    plot_label(text, k, i, ROLE_TASK | ROLE_SIZE | ROLE_CONDITION, lengths, false);
    text_put(b->panel, sizeof(b->panel), text);
    add_lengths(b->panel, sizeof(b->panel), k->table, row);
    plot_label(text, k, i, ROLE_MEMORY | ROLE_MODEL, NULL, true);
    snprintf(b->group, sizeof(b->group), "%s%s%s", row->variant, *text ? " " : "", text);
}

static enum status add_backend(struct plot *p, struct plot_names *groups, const struct bar_place *b,
                               const struct latency_row *row, const struct latency_row *base,
                               struct err *e)
{
    struct plot_point point = plot_point_empty();
    const struct plot_point times[] = {
        {.y = row->median_ns, .low = row->ci95_low_ns, .high = row->ci95_high_ns},
        {.y = base->median_ns, .low = base->ci95_low_ns, .high = base->ci95_high_ns},
    };
    char name[TEXT_SIZE + 8];
    int panel, group;
    enum status st = plot_name(&panel, &p->rows, b->panel, 0, e);

    if (st != OK || panel >= PANELS_MAX)
        return st;
    snprintf(name, sizeof(name), "%s%s", row->backend,
             strcmp(row->backend, base->backend) == 0 ? " (base)" : "");
    if ((st = plot_name(&group, groups, b->group, plot_variant_style(row->variant), e)) != OK ||
        (st = plot_name(&point.series, &p->series, name, plot_backend_style(row->backend), e)) !=
            OK)
        return st;
    point.row = panel;
    point.x = group;
    point.source = row;
    plot_ratio(&point, &times[0], &times[1]);
    if (row == base)
        point.low = point.high = NAN;
    text_put(point.label, PLOT_TEXT, b->group);
    return plot_add(p, &point, e);
}

enum status backend_bars(struct plot *p, const struct plot_data *d, struct err *e)
{
    struct picked k;
    struct plot_names groups = {0};
    enum status st = plot_pick(&k, d, TABLE_LATENCY, has_time, NULL, e);
    struct bar_place *const place = calloc((size_t)k.n + 1, sizeof(*place));
    const char *const base = base_of(d, &k);

    if (st == OK && !place)
        st = fail(e, E_NOMEM, "no memory for a figure  -> free some");
    for (int i = 0; place && i < k.n; i++)
        find_place(&place[i], &k, i);
    for (int b = 0; place && b < k.n && st == OK; b++) {
        const struct latency_row *const reference = k.row[b];
        if (strcmp(reference->backend, base) != 0)
            continue;
        for (int i = 0; i < k.n && st == OK; i++) {
            const struct latency_row *const row = k.row[i];
            if (strcmp(place[i].panel, place[b].panel) == 0 &&
                strcmp(place[i].group, place[b].group) == 0)
                st = add_backend(p, &groups, &place[i], row, reference, e);
        }
    }
    if (p->series.n < 2) {
        p->n = 0;
        snprintf(p->why, sizeof(p->why),
                 k.n == 0 ? "latency.csv has no row with a time"
                          : "latency.csv has no two backends of one shape, one of them the base");
    } else {
        remark_on_panels(p, p->rows.n);
    }
    if (st == OK)
        plot_wrap(p, groups.n > GROUPS_ABREAST ? 1 : PANELS_ABREAST);
    free(groups.v);
    free(place);
    free(k.row);
    return st;
}

/* SPDX-License-Identifier: MIT
 *
 * Figures of bars: memory stacked by part, and backends beside each other. */
#include "plot.h"

#include <stdlib.h>
#include <string.h>

enum { PANELS_MAX = 24, PANELS_ABREAST = 3, GROUPS_ABREAST = 8 };

/* What tells bars of one workload apart, besides variant and backend. */
static const char *const bar_columns[] = {
    "mem_kind", "gate",     "norm_place", "clip",    "clamp_len",  "same_length",
    "kv_heads", "ffn",      "norm",       "mask",    "mask_heads", "rnn_cell",
    "halt",     "settings", "phase",      "layers",  "threads",    "batch_size",
    "d_model",  "heads",    "d_head",     "d_inner", "dtype",      NULL};

/* ---- memory ------------------------------------------------------------------------------- */

static const struct stacked {
    const char *name;
    size_t at;
} parts[] = {
    {"weights", offsetof(struct memory_row, weights_bytes)},
    {"activations", offsetof(struct memory_row, activations_bytes)},
    {"memory state", offsetof(struct memory_row, memory_state_bytes)},
    {"scores", offsetof(struct memory_row, scores_bytes)},
    {"relative positions", offsetof(struct memory_row, rel_pos_bytes)},
    {"gradients", offsetof(struct memory_row, gradients_bytes)},
    {"optimiser", offsetof(struct memory_row, optimizer_bytes)},
    {"backend scratch", offsetof(struct memory_row, backend_scratch_bytes)},
};

static double extent(const struct memory_row *m)
{
    return (double)(m->seq_tokens + m->mem_tokens) * (double)m->batch_size * (double)m->layers;
}

static bool has_bytes(const struct memory_row *m)
{
    return strcmp(m->status, row_status_name[ROW_OK]) == 0 && m->arena_peak_bytes != I64_EMPTY;
}

/* No row of the same workload is of a larger shape. */
static bool is_largest(const struct rows *all, const struct memory_row *m)
{
    const struct memory_row *const v = all->row;

    for (size_t i = 0; i < all->n; i++)
        if (has_bytes(&v[i]) && strcmp(v[i].workload, m->workload) == 0 &&
            extent(&v[i]) > extent(m))
            return false;
    return true;
}

/* One bar: its parts end to end. */
static enum status add_bar(struct plot *p, const struct memory_row *m, int row, int bar,
                           const char *label, struct err *e)
{
    double from = 0;
    enum status st = OK;

    for (size_t k = 0; k < ARRAY_LEN(parts) && st == OK; k++) {
        int64_t bytes;
        memcpy(&bytes, (const char *)m + parts[k].at, sizeof(bytes));
        if (bytes == I64_EMPTY || bytes == 0)
            continue;
        struct plot_point point = plot_point_empty();
        point.row = row;
        point.x = bar;
        point.y = (double)bytes;
        point.low = from;
        point.high = from += (double)bytes;
        text_put(point.label, PLOT_TEXT, label);
        st = plot_name(&point.series, &p->series, parts[k].name, (int)k, e);
        if (st == OK)
            st = plot_add(p, &point, e);
    }
    return st;
}

enum status plot_memory_parts(struct plot *p, const struct plot_data *d, struct err *e)
{
    const struct table *const t = &tables[TABLE_MEMORY];
    const struct rows *const all = &d->table[TABLE_MEMORY];
    struct rows used = {.row = malloc(all->n * t->row_size + 1)};
    struct memory_row *const row = used.row;
    int column, bars[PANELS_MAX] = {0};
    enum status st = OK;

    if (!row)
        return fail(e, E_NOMEM, "no memory for a figure  -> free some");
    for (size_t i = 0; i < all->n; i++) {
        const struct memory_row *const m = (const struct memory_row *)all->row + i;
        if (has_bytes(m) && is_largest(all, m))
            row[used.n++] = *m;
    }
    st = plot_name(&column, &p->columns, "", 0, e);
    for (size_t i = 0; i < used.n && st == OK; i++) {
        char text[PLOT_TEXT], label[3 * PLOT_TEXT], size[2][PLOT_TEXT];
        int r;
        plot_value(size[0], PLOT_TEXT, t, &row[i], "seq_tokens");
        plot_value(size[1], PLOT_TEXT, t, &row[i], "mem_tokens");
        snprintf(label, sizeof(label), "%s %s %s", row[i].workload, size[0], size[1]);
        st = plot_name(&r, &p->rows, label, 0, e);
        if (st != OK || r >= PANELS_MAX)
            continue; /* a later bar may belong to a panel that is drawn */
        plot_label(text, t, &used, i, bar_columns, true);
        snprintf(label, sizeof(label), "%s %s%s%s", row[i].variant, row[i].backend,
                 *text ? " " : "", text);
        st = add_bar(p, &row[i], r, bars[r]++, label, e);
    }
    if (p->n == 0)
        snprintf(p->why, sizeof(p->why), "memory.csv has no row with bytes");
    else if (p->rows.n > PANELS_MAX)
        snprintf(p->why, sizeof(p->why), "%d more shapes are not drawn", p->rows.n - PANELS_MAX);
    free(row);
    return st;
}

/* ---- backends ----------------------------------------------------------------------------- */

static bool has_time(const struct latency_row *r)
{
    return strcmp(r->status, row_status_name[ROW_OK]) == 0 && r->median_ns > 0;
}

/* The backend to compare with: --base, else the first of the program's list that was measured and
 * is not the reference. */
static const char *base_of(const struct plot_data *d, const struct latency_row *v, size_t n)
{
    const char *best = NULL;

    if (d->base)
        return d->base;
    for (size_t i = 0; i < n; i++)
        if (!plot_is_reference(v[i].backend) &&
            (!best || plot_backend_style(v[i].backend) < plot_backend_style(best)))
            best = v[i].backend;
    return best ? best : "";
}

/* Panel and group of bars that a row belongs to. */
struct bar_place {
    char panel[3 * PLOT_TEXT], group[2 * PLOT_TEXT];
};

static void find_place(struct bar_place *b, const struct rows *rows, size_t i)
{
    static const char *const lengths[] = {"seq_tokens", "mem_tokens"};
    const struct table *const t = &tables[TABLE_LATENCY];
    const struct latency_row *const row = (const struct latency_row *)rows->row + i;
    char text[PLOT_TEXT];
    size_t n;

    plot_label(text, t, rows, i, plot_shape_columns, false);
    n = (size_t)snprintf(b->panel, sizeof(b->panel), "%s", text);
    for (size_t k = 0; k < ARRAY_LEN(lengths); k++) {
        plot_value(text, sizeof(text), t, row, lengths[k]);
        n += (size_t)snprintf(b->panel + n, sizeof(b->panel) - n, "%s%s", n ? " " : "", text);
    }
    plot_label(text, t, rows, i, plot_series_columns, true);
    snprintf(b->group, sizeof(b->group), "%s%s%s", row->variant, *text ? " " : "", text);
}

static enum status add_backend(struct plot *p, struct plot_names *groups, const struct bar_place *b,
                               const struct latency_row *row, const struct latency_row *base,
                               struct err *e)
{
    struct plot_point point = plot_point_empty();
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
    const double up[] = {row->ci95_high_ns / row->median_ns, base->median_ns / base->ci95_low_ns};
    const double down[] = {row->median_ns / row->ci95_low_ns, base->ci95_high_ns / base->median_ns};
    point.row = panel;
    point.x = group;
    point.y = row->median_ns / base->median_ns;
    if (row != base) { /* lengths of both intervals, as of independent errors */
        point.high = point.y * exp(hypot(log(up[0]), log(up[1])));
        point.low = point.y / exp(hypot(log(down[0]), log(down[1])));
    }
    text_put(point.label, PLOT_TEXT, b->group);
    return plot_add(p, &point, e);
}

/* Panels in lines of three, wide ones below each other: their names become columns, which the table
 * wraps. */
static void wrap_panels(struct plot *p, int groups)
{
    const struct plot_names panels = p->rows;

    p->rows = p->columns;
    p->columns = panels;
    for (int i = 0; i < panels.n; i++)
        p->columns.v[i].style = i;
    for (int i = 0; i < p->n; i++)
        p->point[i].column = p->point[i].row, p->point[i].row = 0;
    p->abreast = groups > GROUPS_ABREAST ? 1 : PANELS_ABREAST;
}

enum status plot_backends(struct plot *p, const struct plot_data *d, struct err *e)
{
    const struct rows *const all = &d->table[TABLE_LATENCY];
    struct rows used = {.row = malloc(all->n * sizeof(struct latency_row) + 1)};
    struct latency_row *const v = used.row;
    struct bar_place *const place = calloc(all->n + 1, sizeof(*place));
    struct plot_names groups = {0};
    enum status st = OK;

    if (!v || !place) {
        st = fail(e, E_NOMEM, "no memory for a figure  -> free some");
        goto out;
    }
    for (size_t i = 0; i < all->n; i++)
        if (has_time((const struct latency_row *)all->row + i))
            v[used.n++] = ((const struct latency_row *)all->row)[i];
    const char *const base = base_of(d, v, used.n);
    for (size_t i = 0; i < used.n; i++)
        find_place(&place[i], &used, i);
    for (size_t b = 0; b < used.n && st == OK; b++) {
        if (strcmp(v[b].backend, base) != 0)
            continue;
        for (size_t i = 0; i < used.n && st == OK; i++)
            if ((i == b || !plot_is_reference(v[i].backend)) &&
                strcmp(place[i].panel, place[b].panel) == 0 &&
                strcmp(place[i].group, place[b].group) == 0)
                st = add_backend(p, &groups, &place[i], &v[i], &v[b], e);
    }
    if (p->series.n < 2) {
        p->n = 0;
        snprintf(p->why, sizeof(p->why),
                 used.n == 0
                     ? "latency.csv has no row with a time"
                     : "latency.csv has no two backends of one shape, one of them the base");
    } else if (p->rows.n > PANELS_MAX) {
        snprintf(p->why, sizeof(p->why), "%d more shapes are not drawn", p->rows.n - PANELS_MAX);
    }
    if (st == OK)
        wrap_panels(p, groups.n);
out:
    free(groups.v);
    free(place);
    free(v);
    return st;
}

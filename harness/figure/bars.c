/* SPDX-License-Identifier: MIT
 *
 * Figures of bars: memory stacked by part, and backends side by side. */
#include "figure.h"

enum { PANELS_MAX = 24, PANELS_ABREAST = 3, GROUPS_ABREAST = 8 };

static const char *const lengths[] = {"seq_tokens", "mem_tokens", NULL};

/* "seq 128 mem 0", appended to a text. */
static void add_lengths(char *buf, size_t size, const struct table *t, const void *row)
{
    for (int k = 0; lengths[k]; k++) {
        char text[PLOT_TEXT];
        plot_value(text, sizeof(text), t, row, plot_column(t, lengths[k]));
        text_join(buf, size, " ", text);
    }
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

    for (size_t i = 0; i < d->table[TABLE_MEMORY].n; i++)
        if (strcmp(v[i].status, row_status_name[ROW_OK]) == 0 &&
            v[i].arena_peak_bytes != I64_EMPTY && strcmp(v[i].workload, m->workload) == 0 &&
            extent(&v[i]) > extent(m))
            return false;
    return m->arena_peak_bytes != I64_EMPTY;
}

/* One bar: its parts end to end. */
static void add_bar(struct plot *p, const void *m, int row, int bar, const char *label)
{
    double from = 0;

    for (size_t k = 0; k < ARRAY_LEN(parts); k++) {
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
        point.series = plot_name(&p->series, parts[k].name, (int)k);
        plot_add(p, &point);
    }
}

void memory_parts(struct plot *p, const struct plot_data *d)
{
    const struct picked k = plot_pick(d, TABLE_MEMORY, is_largest, NULL);
    int bars[PANELS_MAX] = {0};

    plot_one_column(p);
    for (int i = 0; i < k.n; i++) {
        const struct memory_row *const m = k.row[i];
        char text[PLOT_TEXT], label[3 * PLOT_TEXT];
        text_put(label, sizeof(label), m->workload);
        add_lengths(label, sizeof(label), k.table, m);
        const int row = plot_name(&p->rows, label, 0);
        if (row >= PANELS_MAX)
            continue; /* a later bar may belong to a panel that is drawn */
        plot_label(text, &k, i, ROLE_SIZE | ROLE_CONDITION | ROLE_MEMORY | ROLE_MODEL, NULL, true);
        snprintf(label, sizeof(label), "%s %s", m->variant, m->backend);
        text_join(label, sizeof(label), " ", text);
        add_bar(p, m, row, bars[row]++, label);
    }
    plot_say_beyond(p, p->rows.n - PANELS_MAX, "shape");
    free(k.row);
}

/* ---- backends ----------------------------------------------------------------------------- */

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
    text_put(b->group, sizeof(b->group), row->variant);
    text_join(b->group, sizeof(b->group), " ", text);
}

static void add_backend(struct plot *p, struct plot_names *groups, const struct bar_place *b,
                        const struct latency_row *row, const struct latency_row *base)
{
    struct plot_point point = plot_point_empty(), times[2];
    char name[TEXT_SIZE + 8];

    point.row = plot_name(&p->rows, b->panel, 0);
    if (point.row >= PANELS_MAX)
        return;
    snprintf(name, sizeof(name), "%s%s", row->backend,
             strcmp(row->backend, base->backend) == 0 ? " (base)" : "");
    point.x = plot_name(groups, b->group, plot_variant_style(row->variant));
    point.series = plot_name(&p->series, name, plot_backend_style(row->backend));
    point.source = row;
    plot_time(&times[0], row);
    plot_time(&times[1], base);
    plot_ratio(&point, &times[0], &times[1]);
    if (row == base)
        point.low = point.high = NAN;
    text_put(point.label, PLOT_TEXT, b->group);
    plot_add(p, &point);
}

void backend_bars(struct plot *p, const struct plot_data *d)
{
    const struct picked k = plot_pick(d, TABLE_LATENCY, plot_has_time, NULL);
    struct plot_names groups = {0};
    struct bar_place *const place = need_room((size_t)k.n + 1, sizeof(*place));
    const char *const base = base_of(d, &k);

    for (int i = 0; i < k.n; i++)
        find_place(&place[i], &k, i);
    for (int b = 0; b < k.n; b++) {
        const struct latency_row *const reference = k.row[b];
        if (strcmp(reference->backend, base) != 0)
            continue;
        for (int i = 0; i < k.n; i++)
            if (strcmp(place[i].panel, place[b].panel) == 0 &&
                strcmp(place[i].group, place[b].group) == 0)
                add_backend(p, &groups, &place[i], k.row[i], reference);
    }
    if (k.n == 0)
        text_put(p->why, sizeof(p->why), "latency.csv has no row with a time");
    if (p->series.n < 2)
        p->n = 0;
    plot_say_beyond(p, p->rows.n - PANELS_MAX, "shape");
    plot_wrap(p, groups.n > GROUPS_ABREAST ? 1 : PANELS_ABREAST);
    free(groups.v);
    free(place);
    free(k.row);
}

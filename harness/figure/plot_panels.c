/* SPDX-License-Identifier: MIT
 *
 * From the rows of a table to lines in a grid of panels: which columns make a panel, which make a
 * series, and what they are called. Only what differs is named. */
#include "plot.h"

#include "variants/backends/backend.h"
#include "variants/variant.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { ROWS_MAX = 12 }; /* of panels: a page that can still be read */

const char *const plot_shape_columns[] = {
    "workload", "phase",   "batch_size", "layers",     "d_model", "heads",
    "d_head",   "d_inner", "threads",    "dtype",      "pin",     "membind",
    "corpus",   "split",   "unit",       "cache_mode", NULL};
const char *const plot_series_columns[] = {
    "mem_kind", "gate", "norm_place", "clip",     "clamp_len", "same_length", "kv_heads",   "ffn",
    "norm",     "mask", "mask_heads", "rnn_cell", "halt",      "settings",    "checkpoint", NULL};

/* ---- names and styles --------------------------------------------------------------------- */

/* A name from elsewhere has a place of its own, the same in each figure. */
static int foreign_style(const char *name, int known)
{
    return known + (int)(XXH3_64bits(name, strlen(name)) % 97);
}

int plot_variant_style(const char *name)
{
    int n = 0;

    for (; variants[n]; n++)
        if (strcmp(variants[n]->name, name) == 0)
            return n;
    return foreign_style(name, n);
}

int plot_backend_style(const char *name)
{
    int n = 0;

    for (; backends[n]; n++)
        if (strcmp(backends[n]->name, name) == 0)
            return n;
    return foreign_style(name, n);
}

bool plot_is_reference(const char *name)
{
    const struct backend *const b = backend_find(name);
    return b && !b->inherits;
}

enum status plot_name(int *index, struct plot_names *names, const char *text, int style,
                      struct err *e)
{
    int same_style = 0;

    for (int i = 0; i < names->n; i++) {
        if (strcmp(names->v[i].text, text) == 0) {
            *index = i;
            return OK;
        }
        same_style += names->v[i].style == style;
    }
    if (names->n == names->cap) {
        const int cap = names->cap ? 2 * names->cap : 16;
        struct plot_name *const v = realloc(names->v, (size_t)cap * sizeof(*v));
        if (!v)
            return fail(e, E_NOMEM, "no memory for %d names of a figure  -> free some", cap);
        names->v = v;
        names->cap = cap;
    }
    struct plot_name *const name = &names->v[names->n];
    *name = (struct plot_name){.style = style, .dash = same_style, .order = names->n};
    text_put(name->text, PLOT_TEXT, text);
    *index = names->n++;
    return OK;
}

/* ---- labels ------------------------------------------------------------------------------- */

static const struct column *column_of(const struct table *t, const char *name)
{
    for (int i = 0; i < t->n; i++)
        if (strcmp(t->columns[i].name, name) == 0)
            return &t->columns[i];
    return NULL;
}

static bool same_value(const struct column *c, const char *a, const char *b)
{
    if (c->type == COLUMN_TEXT)
        return strcmp(a + c->offset, b + c->offset) == 0;
    return memcmp(a + c->offset, b + c->offset, c->size) == 0;
}

bool plot_same(const void *a, const void *b, const char *const *columns)
{
    for (int i = 0; columns[i]; i++) { /* every table of results begins with the key */
        const struct column *const c = column_of(&tables[TABLE_LATENCY], columns[i]);
        CHECK(c);
        if (!same_value(c, a, b))
            return false;
    }
    return true;
}

static const char *row_at(const struct table *t, const struct rows *rows, size_t i)
{
    return (const char *)rows->row + i * t->row_size;
}

/* Rows with which a row is compared to see what needs a name. */
struct peers {
    const struct column *workload, *variant; /* must be equal; NULL: need not */
};

static bool varies(const struct table *t, const struct rows *rows, size_t i, const struct column *c,
                   const struct peers *p)
{
    const char *const row = row_at(t, rows, i);

    for (size_t k = 0; k < rows->n; k++) {
        const char *const other = row_at(t, rows, k);
        if (!same_value(c, row, other) &&
            (!p->workload || c == p->workload || same_value(p->workload, row, other)) &&
            (!p->variant || same_value(p->variant, row, other)))
            return true;
    }
    return false;
}

void plot_value(char *buf, size_t size, const struct table *t, const void *row, const char *column)
{
    static const char *const short_names[][2] = {
        {"seq_tokens", "seq "},
        {"mem_tokens", "mem "},
        {"batch_size", "batch "},
        {"layers", "layers "},
        {"d_model", "d "},
        {"heads", "heads "},
        {"d_head", "d_head "},
        {"d_inner", "d_inner "},
        {"threads", "threads "},
        {"clip", "clip "},
        {"clamp_len", "clamp "},
        {"pin", "pin "},
        {"same_length", "same_length "},
        {"kv_heads", "kv_heads "},
    };
    char num[NUMBER_SIZE];
    const char *name = "", *value = "";

    for (int i = 0; i < t->n; i++)
        if (strcmp(t->columns[i].name, column) == 0)
            value = row_field(t, i, row, num);
    for (size_t i = 0; i < ARRAY_LEN(short_names); i++)
        if (strcmp(short_names[i][0], column) == 0)
            name = short_names[i][1];
    const char *const slash = strrchr(value, '/'); /* of a path its end */
    if (slash && slash[1])
        value = slash + 1;
    snprintf(buf, size, "%s%s", *value ? name : "", value);
}

void plot_label(char buf[PLOT_TEXT], const struct table *t, const struct rows *rows, size_t i,
                const char *const *columns, bool variant)
{
    const struct peers peers = {column_of(t, "workload"), variant ? column_of(t, "variant") : NULL};
    size_t n = 0;

    buf[0] = '\0';
    for (int k = 0; columns[k]; k++) {
        const struct column *const c = column_of(t, columns[k]);
        char value[PLOT_TEXT];
        if (!c || !varies(t, rows, i, c, &peers))
            continue;
        plot_value(value, sizeof(value), t, row_at(t, rows, i), columns[k]);
        if (*value && n < PLOT_TEXT)
            n += (size_t)snprintf(buf + n, PLOT_TEXT - n, "%s%s", n ? " " : "", value);
    }
}

/* ---- the grid ----------------------------------------------------------------------------- */

static enum status place(struct plot *p, struct plot_point *point, const struct rows *rows,
                         size_t i, const struct plot_panels *s, struct err *e)
{
    const struct table *const t = &tables[s->table];
    const char *const variant = row_text(t, row_at(t, rows, i), "variant");
    const char *const across = row_text(t, row_at(t, rows, i), s->across);
    char text[PLOT_TEXT], name[PLOT_TEXT + TEXT_SIZE + 2];
    enum status st;

    plot_label(text, t, rows, i, s->rows, false);
    if ((st = plot_name(&point->row, &p->rows, text, 0, e)) != OK ||
        (st = plot_name(&point->column, &p->columns, across, plot_backend_style(across), e)) != OK)
        return st;
    plot_label(text, t, rows, i, plot_series_columns, true);
    snprintf(name, sizeof(name), "%s%s%s", variant, *text ? " " : "", text);
    return plot_name(&point->series, &p->series, name, plot_variant_style(variant), e);
}

/* Different x in a row of panels, as far as `need` asks. */
static bool enough(const struct plot *p, int row, int need)
{
    double seen[8];
    int n = 0;

    for (int i = 0; i < p->n && n < need; i++) {
        bool is_new = p->point[i].row == row;
        for (int k = 0; k < n && is_new; k++)
            is_new = p->point[i].x != seen[k];
        if (is_new)
            seen[n++] = p->point[i].x;
    }
    return n >= need;
}

static enum status drop_rows(struct plot *p, const struct plot_panels *s, struct err *e)
{
    int *const keep = calloc((size_t)p->rows.n + 1, sizeof(*keep));
    int kept = 0, n = 0, thin = 0, beyond = 0;

    if (!keep)
        return fail(e, E_NOMEM, "no memory for %d rows of panels  -> free some", p->rows.n);
    for (int r = 0; r < p->rows.n; r++) {
        const bool full = kept == ROWS_MAX, good = enough(p, r, s->need);
        thin += !good;
        beyond += good && full;
        keep[r] = good && !full ? kept++ : -1;
    }
    for (int i = 0; i < p->n; i++)
        if (keep[p->point[i].row] >= 0)
            p->point[n++] = p->point[i];
    p->n = n;
    for (int i = 0; i < p->n; i++)
        p->point[i].row = keep[p->point[i].row];
    for (int r = 0; r < p->rows.n; r++)
        if (keep[r] >= 0)
            p->rows.v[keep[r]] = p->rows.v[r];
    p->rows.n = kept;
    if (n == 0)
        snprintf(p->why, sizeof(p->why), "%s", s->too_few);
    else if (beyond > 0)
        snprintf(p->why, sizeof(p->why), "%d more shapes are not drawn", beyond);
    else if (thin > 0)
        snprintf(p->why, sizeof(p->why), "%d shapes are not drawn: %s", thin, s->too_few);
    free(keep);
    return OK;
}

enum status plot_panels(struct plot *p, const struct plot_data *d, const struct plot_panels *s,
                        struct err *e)
{
    const struct rows *const all = &d->table[s->table];
    const size_t size = tables[s->table].row_size;
    struct rows used = {.row = malloc(all->n * size + 1)};
    struct plot_point *const points = calloc(all->n + 1, sizeof(*points));
    enum status st = OK;

    if (!used.row || !points) {
        st = fail(e, E_NOMEM, "no memory for %zu points  -> free some", all->n);
        goto out;
    }
    /* Names depend on what else is drawn: first see which rows are. */
    for (size_t i = 0; i < all->n; i++) {
        const char *const row = (const char *)all->row + i * size;
        points[used.n] = plot_point_empty();
        if (s->point(&points[used.n], row, d))
            memcpy((char *)used.row + size * used.n++, row, size);
    }
    for (size_t i = 0; i < used.n && st == OK; i++) {
        st = place(p, &points[i], &used, i, s, e);
        if (st == OK)
            st = plot_add(p, &points[i], e);
    }
    if (used.n == 0)
        snprintf(p->why, sizeof(p->why), "%s", s->nothing);
    else if (st == OK)
        st = drop_rows(p, s, e);
out:
    free(points);
    free(used.row);
    return st;
}

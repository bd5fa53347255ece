/* SPDX-License-Identifier: MIT
 *
 * The points of a figure: picked from the rows of a table into a grid of panels, sorted, and
 * printed as the table that a script reads. */
#include "seeds.h"

struct plot_point plot_point_empty(void)
{
    return (struct plot_point){.x = NAN, .y = NAN, .low = NAN, .high = NAN, .z = NAN};
}

void plot_add(struct plot *p, const struct plot_point *point)
{
    GROW_SMALL(p->point, p->n);
    p->point[p->n++] = *point;
}

void plot_time(struct plot_point *p, const struct latency_row *row)
{
    p->y = row->median_ns;
    p->low = row->ci95_low_ns;
    p->high = row->ci95_high_ns;
}

void plot_say_beyond(struct plot *p, int n, const char *what)
{
    if (p->n > 0 && n > 0)
        snprintf(p->why, sizeof(p->why), "%d more %s%s not drawn  -> select %ss with --filter", n,
                 what, n == 1 ? " is" : "s are", what);
}

void plot_say_left_out(struct plot *p, int n, const char *why)
{
    if (p->n > 0 && n > 0)
        snprintf(p->why, sizeof(p->why), "not drawn, because %s: %d", why, n);
}

void plot_free(struct plot *p)
{
    free(p->point);
    free(p->rows.v);
    free(p->columns.v);
    free(p->series.v);
    *p = (struct plot){0};
}

/* ---- picking ------------------------------------------------------------------------------ */

/* Of panels, to keep the page readable; and panels whose lines have two points each, which say
 * little where there are many. */
enum { ROWS_MAX = 12, PANELS_OF_TWO = 8 };

static bool read_point(struct plot_point *out, const struct figure *f, const void *row,
                       const struct plot_data *d)
{
    const struct table *const t = &tables[f->table];
    const struct column *const label = plot_column(t, f->label);

    *out = plot_point_empty();
    out->source = row;
    out->x = plot_number(t, row, f->x);
    out->y = plot_number(t, row, f->y);
    out->low = plot_number(t, row, f->low);
    out->high = plot_number(t, row, f->high);
    out->z = plot_number(t, row, f->z);
    if (label) {
        char num[NUMBER_SIZE];
        text_put(out->label, PLOT_TEXT, row_field(t, (int)(label - t->columns), row, num));
    }
    return (!f->point || f->point(out, row, d)) && isfinite(out->x) && isfinite(out->y);
}

/* The study's row of the training that a score is of, or NULL. */
static const struct study_row *trained(const struct plot_data *d, const void *row)
{
    const struct perplexity_row *const v = d->table[TABLE_PERPLEXITY].row;

    return d->trained ? d->trained[(const struct perplexity_row *)row - v] : NULL;
}

/* Does the study have several sizes? */
static bool sizes_differ(const struct plot_data *d)
{
    const struct study_row *const r = d->table[TABLE_STUDY].row;

    for (size_t i = 1; i < d->table[TABLE_STUDY].n; i++)
        if (strcmp(r[i].size, r[0].size) != 0)
            return true;
    return false;
}

/* Shapes below each other, backends side by side, a series per variant and its choices. A contender
 * of a study has its study's names: sizes that are its own make no panel. */
static void place(struct plot *p, struct plot_point *point, const struct picked *k, int i,
                  const struct plot_data *d)
{
    const struct figure *const f = p->figure;
    const struct study_row *const study =
        f->table == TABLE_PERPLEXITY ? trained(d, k->row[i]) : NULL;
    const char *const axes[] = {f->x ? f->x : f->label, f->x ? f->label : NULL, NULL};
    const char *const variant = row_text(k->table, k->row[i], "variant");
    const char *const backend = row_text(k->table, k->row[i], "backend");
    char text[PLOT_TEXT], panel[2 * PLOT_TEXT], name[3 * PLOT_TEXT + 2];

    plot_label(text, k, i, study ? f->facet & ~(unsigned)ROLE_SIZE : f->facet, axes, false);
    text_put(panel, sizeof(panel), text);
    text_join(panel, sizeof(panel), " ", study && sizes_differ(d) ? study->size : "");
    point->row = plot_name(&p->rows, panel, 0);
    point->column = plot_name(&p->columns, backend, plot_backend_style(backend));
    if (study) {
        point->series = study_series(p, study);
        return;
    }
    text_put(name, sizeof(name), variant);
    if (f->series_name)
        f->series_name(name, sizeof(name), k->row[i]);
    plot_label(text, k, i, f->series, axes, true);
    text_join(name, sizeof(name), f->series_name ? ", " : " ", text);
    point->series = plot_name(&p->series, name, plot_variant_style(variant));
    text_put(p->series.v[point->series].kind, PLOT_TEXT, name + strlen(variant));
}

void plot_ratio(struct plot_point *out, const struct plot_point *a, const struct plot_point *b)
{
    const double up[] = {a->high / a->y, b->y / b->low}, down[] = {a->y / a->low, b->high / b->y};

    out->y = a->y / b->y;
    out->high = out->y * exp(hypot(log(up[0]), log(up[1])));
    out->low = out->y / exp(hypot(log(down[0]), log(down[1])));
}

/* Distinct x in a row of panels, counted up to `need`. */
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

static int rows_with(const struct plot *p, int need)
{
    int n = 0;

    for (int r = 0; r < p->rows.n; r++)
        n += enough(p, r, need);
    return n;
}

static void drop_rows(struct plot *p)
{
    const struct figure *const f = p->figure;
    int *const keep = need_room((size_t)p->rows.n + 1, sizeof(*keep));
    const bool many = rows_with(p, 2) * p->columns.n > PANELS_OF_TWO;
    const int need = f->need == 2 && many ? 3 : f->need;
    int kept = 0, n = 0, thin = 0, beyond = 0;

    for (int r = 0; r < p->rows.n; r++) {
        const bool full = kept == ROWS_MAX, good = enough(p, r, need);
        thin += !good;
        beyond += good && full;
        if (good && !full)
            p->rows.v[kept] = p->rows.v[r];
        keep[r] = good && !full ? kept++ : -1;
    }
    p->rows.n = kept;
    for (int i = 0; i < p->n; i++)
        if (keep[p->point[i].row] >= 0) {
            p->point[n] = p->point[i];
            p->point[n++].row = keep[p->point[i].row];
        }
    p->n = n;
    plot_say_beyond(p, beyond, "shape");
    if (beyond == 0 && thin > 0)
        snprintf(p->why, sizeof(p->why), "%d shape%s with fewer than %s %s%s%s", thin,
                 thin == 1 ? "" : "s", need == 3 ? "three" : "two", f->counted,
                 n == 0      ? ""
                 : thin == 1 ? " is not drawn"
                             : " are not drawn",
                 need > f->need ? "  -> select shapes with --filter" : "");
    free(keep);
}

static bool has_point(const void *row, const struct plot_data *d, const void *figure)
{
    struct plot_point unused;
    return read_point(&unused, figure, row, d);
}

/* A label that all points share tells none apart: then their series' names do. */
static void name_points(struct plot *p)
{
    bool same = p->figure->label && p->n > 1;

    for (int i = 1; i < p->n; i++)
        same = same && strcmp(p->point[i].label, p->point[0].label) == 0;
    for (int i = 0; same && i < p->n; i++)
        text_put(p->point[i].label, PLOT_TEXT, p->series.v[p->point[i].series].text);
}

/* Names depend on what else is drawn: first find out which rows are. */
static void pick(struct plot *p, const struct plot_data *d)
{
    const struct figure *const f = p->figure;
    const struct picked k = plot_pick(d, f->table, has_point, f);

    for (int i = 0; i < k.n; i++) {
        struct plot_point point;
        read_point(&point, f, k.row[i], d);
        place(p, &point, &k, i, d);
        plot_add(p, &point);
    }
    free(k.row);
    if (p->series.n == 1 && p->columns.n > 1)
        plot_join_backends(p);
    name_points(p);
    drop_rows(p);
}

/* ---- order -------------------------------------------------------------------------------- */

static int by_style(const void *a, const void *b)
{
    const struct plot_name *const x = a, *const y = b;

    if (x->style != y->style)
        return x->style < y->style ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* The used names in the order of the program's list; where[old] = new. */
static int *sort_names(struct plot_names *names, const bool *used)
{
    int *const where = need_room((size_t)names->n + 1, sizeof(*where));
    int n = 0;

    for (int i = 0; i < names->n; i++)
        if (used[i])
            names->v[n++] = names->v[i];
    names->n = n;
    if (names->n > 0)
        qsort(names->v, (size_t)names->n, sizeof(*names->v), by_style);
    for (int i = 0; i < names->n; i++)
        where[names->v[i].order] = i;
    for (int i = 0; i < names->n; i++)
        names->v[i].order = i;
    return where;
}

static int by_place(const void *a, const void *b)
{
    const struct plot_point *const p = a, *const q = b;
    const double x[] = {p->row, p->column, p->series, p->kind, p->x};
    const double y[] = {q->row, q->column, q->series, q->kind, q->x};

    for (size_t i = 0; i < ARRAY_LEN(x); i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

static void sort_points(struct plot *p)
{
    bool *const used[] = {need_room((size_t)p->columns.n + 1, 1),
                          need_room((size_t)p->series.n + 1, 1)};

    for (int i = 0; i < p->n; i++)
        used[0][p->point[i].column] = used[1][p->point[i].series] = true;
    int *const column = sort_names(&p->columns, used[0]);
    int *const series = sort_names(&p->series, used[1]);
    for (int i = 0; i < p->n; i++) {
        p->point[i].column = column[p->point[i].column];
        p->point[i].series = series[p->point[i].series];
    }
    if (p->n > 0)
        qsort(p->point, (size_t)p->n, sizeof(*p->point), by_place);
    free(column);
    free(series);
    free(used[0]);
    free(used[1]);
}

/* Exponent of y over x, by least squares of the logarithms, for each series. */
static void add_slopes(struct plot *p)
{
    for (int from = 0, to; from < p->n; from = to) {
        const struct plot_point *const a = &p->point[from];
        double sx = 0, sy = 0, sxx = 0, sxy = 0;
        int n = 0;
        for (to = from;
             to < p->n && p->point[to].series == a->series && p->point[to].column == a->column &&
             p->point[to].row == a->row && p->point[to].kind == a->kind;
             to++) {
            const double x = log(p->point[to].x), y = log(p->point[to].y);
            sx += x, sy += y, sxx += x * x, sxy += x * y, n++;
        }
        const double spread = n * sxx - sx * sx;
        for (int i = from; i < to; i++)
            p->point[i].z = spread > 1e-9 ? (n * sxy - sx * sy) / spread : NAN;
    }
}

enum status plot_make(struct plot *p, const struct figure *f, const struct plot_data *d,
                      struct err *e)
{
    struct scores scores = {0};
    enum status st = OK;

    *p = (struct plot){.figure = f};
    if (f->table == TABLE_PERPLEXITY && d->table[TABLE_STUDY].n > 0) {
        scores = scores_by_contender(d);
        d = &scores.data;
    }
    if (f->follow)
        st = f->follow(p, d, e);
    else if (f->fill)
        f->fill(p, d);
    else
        pick(p, d);
    if (p->n == 0 && !p->why[0])
        text_put(p->why, sizeof(p->why), f->nothing);
    if (f->more)
        f->more(p, d);
    sort_points(p);
    plot_looks(&p->series);
    if (p->n > 0)
        plot_caption(p, d);
    if (f->slopes)
        add_slopes(p);
    scores_free(&scores);
    if (st != OK)
        plot_free(p);
    return st;
}

/* ---- the table ---------------------------------------------------------------------------- */

/* Without field separators: gnuplot's strcol does not handle quotes. */
static void print_text(FILE *f, const char *text)
{
    for (; *text; text++)
        if (*text != ',' && *text != '"')
            fputc(*text, f);
}

static void print_number(FILE *f, double x)
{
    fputc(',', f);
    if (isfinite(x))
        fprintf(f, "%.10g", x);
}

static void print_panel(FILE *f, const struct plot *p, const struct plot_point *a)
{
    const char *const row = a->row < p->rows.n ? p->rows.v[a->row].text : "";
    const char *const column = a->column < p->columns.n ? p->columns.v[a->column].text : "";

    print_text(f, row);
    fputs(*row && *column ? " / " : "", f);
    print_text(f, column);
}

void plot_print_csv(FILE *f, const struct plot *p)
{
    const char *none = ""; /* gnuplot reads an empty field as the one above it */

    for (int i = 0; i < p->n; i++)
        none = *p->point[i].label ? "\302\240" : none;
    fputs("row,column,panel,index,series,colour,marker,dash,kind,x,y,low,high,z,label\n", f);
    for (int i = 0; i < p->n; i++) {
        const struct plot_point *const a = &p->point[i];
        const struct plot_name *const s = &p->series.v[a->series];
        const double numbers[] = {a->x, a->y, a->low, a->high, a->z};
        const int wrap = p->abreast ? p->abreast : p->columns.n + 1;
        fprintf(f, "%d,%d,", a->row + a->column / wrap, a->column % wrap);
        print_panel(f, p, a);
        fprintf(f, ",%d,", a->series);
        print_text(f, s->text);
        fprintf(f, ",%d,%d,%d,%d", s->colour, s->marker, s->dash, a->kind);
        for (size_t k = 0; k < ARRAY_LEN(numbers); k++)
            print_number(f, numbers[k]);
        fputc(',', f);
        print_text(f, *a->label ? a->label : none);
        fputc('\n', f);
    }
}

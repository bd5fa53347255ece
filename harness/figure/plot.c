/* SPDX-License-Identifier: MIT
 *
 * The list of figures, their points, and the table that a script reads. The figures here are lines
 * over one column of a table; the others have files of their own. */
#include "plot.h"

#include <stdlib.h>
#include <string.h>

/* ---- points ------------------------------------------------------------------------------- */

struct plot_point plot_point_empty(void)
{
    return (struct plot_point){.x = NAN, .y = NAN, .low = NAN, .high = NAN, .z = NAN};
}

enum status plot_add(struct plot *p, const struct plot_point *point, struct err *e)
{
    if (p->n == p->cap) {
        const int cap = p->cap ? 2 * p->cap : 64;
        struct plot_point *const more = realloc(p->point, (size_t)cap * sizeof(*more));
        if (!more)
            return fail(e, E_NOMEM, "no memory for %d points  -> free some", cap);
        p->point = more;
        p->cap = cap;
    }
    p->point[p->n++] = *point;
    return OK;
}

void plot_free(struct plot *p)
{
    free(p->point);
    free(p->rows.v);
    free(p->columns.v);
    free(p->series.v);
    *p = (struct plot){0};
}

static int by_style(const void *a, const void *b)
{
    const struct plot_name *const x = a, *const y = b;

    if (x->style != y->style)
        return x->style < y->style ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* The used names in the order of the program's list; where[old] = new. NULL without memory. */
static int *sort_names(struct plot_names *names, const bool *used)
{
    int *const where = calloc((size_t)names->n + 1, sizeof(*where));
    int n = 0;

    if (!where)
        return NULL;
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

static enum status sort_points(struct plot *p, struct err *e)
{
    bool *const used[] = {calloc((size_t)p->columns.n + 1, 1), calloc((size_t)p->series.n + 1, 1)};
    int *column = NULL, *series = NULL;
    enum status st = OK;

    for (int i = 0; i < p->n && used[0] && used[1]; i++)
        used[0][p->point[i].column] = used[1][p->point[i].series] = true;
    if (used[0] && used[1]) {
        column = sort_names(&p->columns, used[0]);
        series = sort_names(&p->series, used[1]);
    }
    if (!column || !series)
        st = fail(e, E_NOMEM, "no memory for a figure  -> free some");
    for (int i = 0; i < p->n && column && series; i++) {
        p->point[i].column = column[p->point[i].column];
        p->point[i].series = series[p->point[i].series];
    }
    if (p->n > 0 && st == OK)
        qsort(p->point, (size_t)p->n, sizeof(*p->point), by_place);
    free(column);
    free(series);
    free(used[0]);
    free(used[1]);
    return st;
}

/* Exponent of y over x, by least squares of the logarithms, of each run of points in one line. */
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
    *p = (struct plot){.figure = f};
    enum status st = f->fill(p, d, e);
    if (st == OK)
        st = sort_points(p, e);
    if (st == OK && f->slopes)
        add_slopes(p);
    if (st != OK)
        plot_free(p);
    return st;
}

/* ---- the table ---------------------------------------------------------------------------- */

/* Without what separates fields: gnuplot's strcol knows no quotes. */
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
    fputs("row,column,panel,index,series,style,dash,kind,x,y,low,high,z,label\n", f);
    for (int i = 0; i < p->n; i++) {
        const struct plot_point *const a = &p->point[i];
        const struct plot_name *const s = &p->series.v[a->series];
        const double numbers[] = {a->x, a->y, a->low, a->high, a->z};
        const int wrap = p->abreast ? p->abreast : p->columns.n + 1;
        fprintf(f, "%d,%d,", a->row + a->column / wrap, a->column % wrap);
        print_panel(f, p, a);
        fprintf(f, ",%d,", a->series);
        print_text(f, s->text);
        fprintf(f, ",%d,%d,%d", s->style, s->dash, a->kind);
        for (size_t k = 0; k < ARRAY_LEN(numbers); k++)
            print_number(f, numbers[k]);
        fputc(',', f);
        print_text(f, a->label);
        fputc('\n', f);
    }
}

/* ---- lines over one column ---------------------------------------------------------------- */

static bool timed(struct plot_point *out, const struct latency_row *row)
{
    if (strcmp(row->status, row_status_name[ROW_OK]) != 0 || !isfinite(row->median_ns))
        return false;
    out->y = row->median_ns;
    out->low = row->ci95_low_ns;
    out->high = row->ci95_high_ns;
    return true;
}

static bool over_seq(struct plot_point *out, const void *row, const struct plot_data *d)
{
    (void)d;
    out->x = (double)((const struct latency_row *)row)->seq_tokens;
    return timed(out, row);
}

static bool over_mem(struct plot_point *out, const void *row, const struct plot_data *d)
{
    (void)d;
    out->x = (double)((const struct latency_row *)row)->mem_tokens;
    return timed(out, row);
}

#define SHAPE_BUT_LENGTHS                                                                          \
    "batch_size", "layers", "d_model", "heads", "d_head", "d_inner", "threads", "dtype", "pin",    \
        "membind", "cache_mode"
static const char *const but_seq[] = {"workload", "phase", "mem_tokens", SHAPE_BUT_LENGTHS, NULL};
static const char *const but_mem[] = {"workload", "phase", "seq_tokens", SHAPE_BUT_LENGTHS, NULL};
static const char NO_TIMES[] = "latency.csv has no row with a time";
static enum status latency_seq(struct plot *p, const struct plot_data *d, struct err *e)
{
    static const struct plot_panels spec = {
        .table = TABLE_LATENCY,
        .rows = but_seq,
        .across = "backend",
        .point = over_seq,
        .need = 2,
        .nothing = NO_TIMES,
        .too_few = "one sequence length only",
    };
    return plot_panels(p, d, &spec, e);
}

static enum status latency_mem(struct plot *p, const struct plot_data *d, struct err *e)
{
    static const struct plot_panels spec = {
        .table = TABLE_LATENCY,
        .rows = but_mem,
        .across = "backend",
        .point = over_mem,
        .need = 2,
        .nothing = NO_TIMES,
        .too_few = "one memory length only",
    };
    return plot_panels(p, d, &spec, e);
}

const struct figure figures[] = {
    {.name = "latency-seq",
     .title = "Latency against sequence length",
     .caption = "Median time of a call; the band is its 95 % interval. Both axes are logarithmic: "
                "the printed slope is the exponent of the sequence length.",
     .fill = latency_seq,
     .slopes = true},
    {.name = "latency-mem",
     .title = "Latency against memory length",
     .caption = "Median time of a call; the band is its 95 % interval.",
     .fill = latency_mem},
    {.name = "memory-parts",
     .title = "Memory by part",
     .caption = "Bytes of the arena, exact, at the largest shape of each workload.",
     .fill = plot_memory_parts},
    {.name = "roofline",
     .title = "Roofline",
     .caption = "Useful arithmetic against compulsory traffic. The lines are the ceilings that "
                "were measured in the same run.",
     .fill = plot_roofline},
    {.name = "perplexity-mem",
     .title = "Perplexity against memory length",
     .caption = "Lower is better; the band is a 95 % interval. Dotted: what the true source "
                "reaches, where the text is generated.",
     .fill = plot_perplexity_mem},
    {.name = "perplexity-time",
     .title = "Perplexity against time per token",
     .caption = "Lower and further left is better; the numbers are memory lengths. Ringed: no "
                "other point is better in both.",
     .fill = plot_perplexity_time},
    {.name = "perplexity-bytes",
     .title = "Perplexity against memory",
     .caption = "Bytes are those of the arena of the same model and shape. Lower and further left "
                "is better; the numbers are memory lengths. Ringed: no other point is better in "
                "both.",
     .fill = plot_perplexity_bytes},
    {.name = "backends",
     .title = "Backends, time relative to the base",
     .caption = "Below 1 is faster than the base. Whiskers join both 95 % intervals as if they "
                "were independent; bench compare pairs the samples. The reference is left out "
                "unless it is the base.",
     .fill = plot_backends},
    {.name = "changes",
     .title = "Changes with their 95 % intervals",
     .caption = "Left of one is faster. Grey: what counts as the same.",
     .fill = plot_changes},
    {.name = "training",
     .title = "Training",
     .caption = "Lines: training loss; points: validation; dotted: what the true source reaches on "
                "the validation text, where it is generated.",
     .fill = plot_training},
    {.name = "eval-speed",
     .title = "Time per predicted token",
     .caption = "A sliding window recomputes its whole context for each token, a memory does not. "
                "Slowdown: the window's time over the others' (markers), the same of their useful "
                "arithmetic (thin lines), and as published for one GPU.",
     .fill = plot_eval_speed},
};
const int figure_count = (int)ARRAY_LEN(figures);

const struct figure *plot_figure(const char *name)
{
    const struct figure *f = figures;

    while (strcmp(f->name, name) != 0)
        f++;
    return f;
}

/* SPDX-License-Identifier: MIT
 *
 * Figures from the tables of a run. Each figure is a function that picks its points out of the
 * tables, and a gnuplot script plots/NAME.gp that draws them; between the two lies one small CSV
 * table, the same form for all. Knows nothing of commands and pages. */
#ifndef PLOT_H
#define PLOT_H

#include "harness/table/record.h"

enum { PLOT_TEXT = 192 };

/* A comparison of two rows, as `compare` and `gate` write them with --format csv. */
struct plot_change {
    char name[PLOT_TEXT]; /* case, and what was compared */
    char verdict[TEXT_SIZE];
    double pct, low, high, threshold;
};

/* The rows of a training run's table. */
struct plot_train {
    char name[TEXT_SIZE]; /* of the file, without its ending */
    struct rows rows;
};

/* Everything in a folder that can be drawn. A table that is not there has no rows. */
struct plot_data {
    char dir[FILE_PATH];
    struct rows table[TABLE_ENV + 1];
    struct plot_train *train;
    int n_train;
    struct plot_change *change;
    int n_changes;
    char (*file)[256]; /* names of the files that were read */
    int n_files;
    const char *base; /* of the comparison of backends; NULL = the first of the program's list */
};

/* E_IO: a table that is there cannot be read, or the folder has none at all. */
enum status plot_read(struct plot_data *d, const char *dir, struct err *e);
void plot_data_free(struct plot_data *d);

struct names;
/* Keep only the rows that match every expression (see filter.h). E_USAGE for what is none. */
enum status plot_filter(struct plot_data *d, const struct names *expressions, struct err *e);

/* Set d->base. E_USAGE for a name that neither the program nor the run has a backend of. */
enum status plot_set_base(struct plot_data *d, const char *base, struct err *e);

/* A panel's row or column, or a series. Equal styles look the same in every figure. */
struct plot_name {
    char text[PLOT_TEXT];
    int style, dash, order;
};
struct plot_names {
    struct plot_name *v;
    int n, cap;
};
struct plot_point {
    int row, column, series, kind;
    double x, y, low, high, z; /* NAN = empty */
    char label[PLOT_TEXT];
};

struct plot {
    const struct figure *figure;
    struct plot_point *point;
    int n, cap;
    struct plot_names rows, columns, series;
    int abreast;   /* columns go on in the next row behind so many; 0 = never */
    char why[256]; /* nothing to show: the reason; else a remark on what is not shown, or "" */
};

struct figure {
    const char *name, *title, *caption;
    enum status (*fill)(struct plot *p, const struct plot_data *d, struct err *e);
    bool slopes; /* z becomes the exponent of y over x */
};
extern const struct figure figures[];
extern const int figure_count;
const struct figure *plot_figure(const char *name); /* which must exist */

/* E_USAGE for a name that no figure has. */
enum status plot_check_names(const struct names *wanted, struct err *e);

/* Fill and sort the points of a figure. p->n == 0 and p->why where there is nothing to show. */
enum status plot_make(struct plot *p, const struct figure *f, const struct plot_data *d,
                      struct err *e);
void plot_free(struct plot *p);

/* The table between program and script: a header and p->n rows. */
void plot_print_csv(FILE *f, const struct plot *p);

enum plot_form { PLOT_SVG, PLOT_PNG, PLOT_TERMINAL };

/* Draw with gnuplot; `width` are the terminal's characters. E_UNSUPPORTED without gnuplot. */
enum status plot_draw(struct bytes *out, const struct plot *p, enum plot_form form, int width,
                      struct err *e);

/* ---- for the figures ---------------------------------------------------------------------- */

/* Places in the program's own lists; unknown names come behind them, each always at the same. */
int plot_variant_style(const char *name);
int plot_backend_style(const char *name);

/* The backend that the others are checked with: it aims at no speed, and beside it they look alike.
 */
bool plot_is_reference(const char *name);

/* Index of a name, which is added where it is new. */
enum status plot_name(int *index, struct plot_names *names, const char *text, int style,
                      struct err *e);
enum status plot_add(struct plot *p, const struct plot_point *point, struct err *e);
struct plot_point plot_point_empty(void);

/* "mem 512": a column's value with its name where the value alone says nothing; "" if empty. */
void plot_value(char *buf, size_t size, const struct table *t, const void *row, const char *column);

/* The values of those `columns` (NULL-ended) in which rows with the same workload differ, and with
 * `variant` of the same variant too, joined by blanks. The workload itself is named where rows
 * differ in it. */
void plot_label(char buf[PLOT_TEXT], const struct table *t, const struct rows *rows, size_t i,
                const char *const *columns, bool variant);

/* Two rows, maybe of two tables, are equal in these key columns (NULL-ended). */
bool plot_same(const void *a, const void *b, const char *const *columns);

/* Key columns that make another shape, apart from seq and mem; and those that make another series
 * of a variant. NULL-ended. */
extern const char *const plot_shape_columns[], *const plot_series_columns[];

/* Lines over x in a grid: shapes below each other, the values of one column side by side. */
struct plot_panels {
    enum table_id table;
    const char *const *rows; /* NULL-ended columns that tell rows of panels apart */
    const char *across;      /* its values stand side by side */
    /* Fill x, y, low, high, label of a row's point, or say no. */
    bool (*point)(struct plot_point *out, const void *row, const struct plot_data *d);
    int need; /* a row of panels must have so many different x */
    const char *nothing, *too_few;
};
enum status plot_panels(struct plot *p, const struct plot_data *d, const struct plot_panels *s,
                        struct err *e);

/* The figures that have files of their own. */
enum status plot_perplexity_mem(struct plot *p, const struct plot_data *d, struct err *e);
enum status plot_perplexity_time(struct plot *p, const struct plot_data *d, struct err *e);
enum status plot_perplexity_bytes(struct plot *p, const struct plot_data *d, struct err *e);
enum status plot_memory_parts(struct plot *p, const struct plot_data *d, struct err *e);
enum status plot_backends(struct plot *p, const struct plot_data *d, struct err *e);
enum status plot_roofline(struct plot *p, const struct plot_data *d, struct err *e);
enum status plot_eval_speed(struct plot *p, const struct plot_data *d, struct err *e);
enum status plot_training(struct plot *p, const struct plot_data *d, struct err *e);
enum status plot_changes(struct plot *p, const struct plot_data *d, struct err *e);

#endif

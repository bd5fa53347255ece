/* SPDX-License-Identifier: MIT
 *
 * Figures from the tables of a run. A figure is a row of figures[]: the columns of its points, what
 * distinguishes panels and series, and functions for what no column holds. A gnuplot script
 * plots/NAME.gp draws it from one small CSV table, of the same form for all figures. Independent of
 * commands and pages. */
#pragma once

#include "harness/table/record.h"

enum { PLOT_TEXT = 192 };

/* ---- what there is to draw ---------------------------------------------------------------- */

/* A comparison of two rows, as `compare` and `gate` write them with --format csv. */
struct plot_change {
    char name[PLOT_TEXT]; /* case, and what was compared */
    char verdict[TEXT_SIZE];
    double pct, low, high, threshold;
};

/* The rows of a training run's table. */
struct plot_train {
    char name[TEXT_SIZE]; /* of the file, without its ending */
    char made_of[256];    /* text and sizes, by the checkpoint beside it; empty if there is none */
    char unit[TEXT_SIZE]; /* what a token is, likewise */
    struct rows rows;
};

/* A table. `table` is NULL for one of comparisons. */
struct plot_file {
    char name[256];
    const struct table *table;
    int train; /* index of the training run, -1 for the tables of a run */
};

/* Everything in a folder that can be drawn. A missing table has no rows. */
struct plot_data {
    char dir[FILE_PATH];
    struct rows table[TABLE_COUNT]; /* of a run, and of a study; trainings are below */
    struct plot_train *train;
    int n_train;
    struct plot_change *change;
    int n_changes;
    struct plot_file *file;
    int n_files;
    const char *base; /* of the comparison of backends; NULL = the first of the program's list */
    const struct study_row *const *trained; /* of each score, NULL: by no study; all NULL: seeds are
                                             * rows of their own (see seeds.h) */
    const struct plot_data *runs; /* of a history, in any order; NULL: this is a single run */
    int n_runs;
};

/* E_IO: a table cannot be read, or the folder has none. */
enum status plot_read(struct plot_data *d, const char *dir, struct err *e);
void plot_data_free(struct plot_data *d);

struct names;
/* Keep only the rows that match every expression (see filter.h). E_USAGE for an invalid one. */
enum status plot_filter(struct plot_data *d, const struct names *expressions, struct err *e);

/* The machine and the program of a run; NULL: it does not say. */
static inline const struct env_row *plot_env(const struct plot_data *d)
{
    return d->table[TABLE_ENV].n > 0 ? d->table[TABLE_ENV].row : NULL;
}

/* Set d->base. E_USAGE unless the program or the run has a backend of that name. */
enum status plot_set_base(struct plot_data *d, const char *base, struct err *e);

/* Tables of comparisons: if the file is one, append its rows to d->change. */
bool plot_is_changes(const char *path);
enum status plot_read_changes(struct plot_data *d, const char *path, struct err *e);

/* ---- points ------------------------------------------------------------------------------- */

/* A panel's row or column, or a series. `style` is what it belongs to, in the program's list of
 * variants, backends or parts; `kind` is what else its text says. */
struct plot_name {
    char text[PLOT_TEXT], kind[PLOT_TEXT];
    int style, order;
    int colour, marker, dash; /* of a series: see looks.c and plots/style.gp */
};
enum { STYLE_FOREIGN = 1000 }; /* from here on: no series of the program, drawn in black */
struct plot_names {
    struct plot_name *v;
    int n;
};
struct plot_point {
    int row, column, series, kind;
    double x, y, low, high, z; /* NAN = empty */
    char label[PLOT_TEXT];
    const void *source; /* the row of the table that it was made from, or NULL */
};

struct plot {
    const struct figure *figure;
    struct plot_point *point;
    int n;
    struct plot_names rows, columns, series;
    int abreast;   /* columns continue in the next row after so many; 0 = never */
    char why[256]; /* without points: the reason; else a remark on what is not shown, or "" */
    char subject[512], where[512]; /* what all points have in common; machine and program */
    char y_title[96];              /* in place of the script's own, if not empty */
    struct plot_page {
        int width, height; /* pixels of 1/96 inch; 0: as much as the figure needs */
        int dpi;           /* of a PNG; 0: 96 */
    } page;
};

/* ---- figures ------------------------------------------------------------------------------ */

/* The role of a column of a table. */
enum figure_role {
    ROLE_TASK = 1,      /* what is computed: workload, lengths, text */
    ROLE_SIZE = 2,      /* how large the model and the batch are */
    ROLE_CONDITION = 4, /* how it is run: phase, element type, threads, placement, caches */
    ROLE_MEMORY = 8,    /* how the past is reached */
    ROLE_MODEL = 16,    /* which model: every other choice */
    ROLE_TUNED = 32, /* of scores: choices that one checkpoint may be scored with, each in turn */
};
unsigned plot_role(const struct table *t, const struct column *c); /* 0: a result, or a name */
const char *plot_role_name(unsigned role);                         /* "task"; "" for 0 */

struct figure {
    const char *name, *title, *caption;

    /* A point for each row of `table` that is ok and has x and y. */
    enum table_id table;
    const char *x, *y, *low, *high, *z, *label; /* columns; NULL = empty */
    unsigned facet, series; /* roles that tell panels apart, and series of one variant */
    int need;               /* a row of panels must have so many different x */
    const char *nothing;    /* the reason if there are no points, unless a function says another */
    const char *counted;    /* what x counts, for the reason if a row of panels is not shown */
    bool slopes;            /* z becomes the exponent of y over x */
    bool several;           /* of several runs: drawn only if it is asked for */
    bool folded;            /* for a closer look: the report shows it folded, behind the others */

    /* Each may be NULL. The rest of a point; false leaves the row out. */
    bool (*point)(struct plot_point *p, const void *row, const struct plot_data *d);
    /* The name of a series instead of its variant. */
    void (*series_name)(char *buf, size_t size, const void *row);
    /* Further points, from those that were picked. */
    void (*more)(struct plot *p, const struct plot_data *d);
    /* All points: nothing is picked. `follow` also reads files besides the tables. */
    void (*fill)(struct plot *p, const struct plot_data *d);
    enum status (*follow)(struct plot *p, const struct plot_data *d, struct err *e);
};
extern const struct figure figures[];
extern const int figure_count;
const struct figure *plot_figure(const char *name); /* which must exist */

/* E_USAGE for a name that no figure has. */
enum status plot_check_names(const struct names *wanted, struct err *e);

/* Is the figure among the names, or are there none and it shows a single run? */
bool plot_is_wanted(const struct figure *f, const struct names *names);

/* Fill and sort the points of a figure. If there is nothing to show, p->n == 0 and p->why says why.
 */
enum status plot_make(struct plot *p, const struct figure *f, const struct plot_data *d,
                      struct err *e);
void plot_free(struct plot *p);

/* ---- pictures ----------------------------------------------------------------------------- */

/* The table between program and script: a header and p->n rows. */
void plot_print_csv(FILE *f, const struct plot *p);

enum plot_form { PLOT_SVG, PLOT_PNG, PLOT_PDF, PLOT_TERMINAL };

/* Draw with gnuplot; `width` is the terminal's width in characters. E_UNSUPPORTED without gnuplot,
 * or if it lacks that form; E_USAGE if the page is too small. */
enum status plot_draw(struct bytes *out, const struct plot *p, enum plot_form form, int width,
                      struct err *e);

/* ---- for the figures ---------------------------------------------------------------------- */

/* What a figure shows is small beside the tables that it is made of: running out of memory for it
 * ends the program (NEED). */
struct plot_point plot_point_empty(void);
void plot_add(struct plot *p, const struct plot_point *point);

/* Time of a call, with its interval, as y. */
void plot_time(struct plot_point *p, const struct latency_row *row);

/* Index of a name, which is added if new. */
int plot_name(struct plot_names *names, const char *text, int style);

/* The remark that so many shapes or cases have no room; that so many series are not drawn, and why.
 * None for 0, and without points. */
void plot_say_beyond(struct plot *p, int n, const char *what);
void plot_say_left_out(struct plot *p, int n, const char *why);

/* One column of panels in place of one a backend: a series is then of a variant and a backend, or
 * of a backend alone if there is only one series. */
void plot_join_backends(struct plot *p);

/* Panels named by p->rows become columns that continue in the next row. */
void plot_wrap(struct plot *p, int abreast);

/* a's value over b's, with an interval from both as if they were independent. */
void plot_ratio(struct plot_point *out, const struct plot_point *a, const struct plot_point *b);

/* What a token of a study is, such as "byte"; "token" if its texts differ. */
const char *study_unit(const struct plot_data *d);

/* A row of panels for each text, size and budget of a study. */
int study_panel(struct plot *p, const struct study_row *r);

/* The series of its contender. */
int study_series(struct plot *p, const struct study_row *r);

/* One column of panels without a name; and one panel alone. */
void plot_one_column(struct plot *p);
void plot_one_panel(struct plot *p);

/* Index in the program's own lists; unknown names come after them, each at a fixed index. */
int plot_variant_style(const char *name);
int plot_backend_style(const char *name);

/* The backend that the others are checked against: it is not optimised, and beside it the others
 * look alike. */
bool plot_is_reference(const char *name);

/* Is the reference left out? It is if a table has rows of others, unless it is the base. */
bool plot_leaves_out_reference(const struct plot_data *d, enum table_id id);

/* Choose colour, marker and dash of every series. */
void plot_looks(struct plot_names *series);

/* Fill in p->what and p->where, unless they are. */
void plot_caption(struct plot *p, const struct plot_data *d);

/* A column by its name; NULL if the table has none. Its number; NAN if empty, a text, or missing.
 */
const struct column *plot_column(const struct table *t, const char *name);
double plot_number(const struct table *t, const void *row, const char *column);

/* "mem 512": a column's value, with its name if the value alone is ambiguous; "" if empty. */
void plot_value(char *buf, size_t size, const struct table *t, const void *row,
                const struct column *c);

/* Rows of one table that a figure shows. */
struct picked {
    const struct table *table;
    const void **row;
    int n;
};

/* The rows with status ok for which `wanted` returns true, and which are not of a reference that is
 * left out; free row. */
typedef bool plot_wanted(const void *row, const struct plot_data *d, const void *arg);
struct picked plot_pick(const struct plot_data *d, enum table_id id, plot_wanted *wanted,
                        const void *arg);
bool plot_has_time(const void *row, const struct plot_data *d, const void *unused);

/* Names what distinguishes row i: the values, joined by blanks, of columns with those roles in which rows
 * of the same workload, and with `variant` of the same variant too, differ. The workload itself is
 * named if rows differ in it. Columns named in `but` (NULL-terminated) are left out. */
void plot_label(char buf[PLOT_TEXT], const struct picked *k, int i, unsigned roles,
                const char *const *but, bool variant);

/* A row of panels for row i alone, named by what distinguishes it. */
int plot_case_panel(struct plot *p, const struct picked *k, int i);

/* Two rows of a table have the same value in a column. */
bool plot_same_value(const struct column *c, const void *a, const void *b);

/* Two rows, possibly of two tables, are equal in all key columns of these roles. */
bool plot_same(const void *a, const void *b, unsigned roles);

/* "seed 1", "CONTENDER seed 1", "CONTENDER seed 1 8Mi": the name of the weights that a training of a study made. */
void plot_name_weights(char name[LINE_SIZE], const struct study_row *r, const char *variant);

/* ---- functions of figures[] --------------------------------------------------------------- */

bool roofline_point(struct plot_point *p, const void *row, const struct plot_data *d);
void roofline_ceilings(struct plot *p, const struct plot_data *d);

bool perplexity_time(struct plot_point *p, const void *row, const struct plot_data *d);
bool perplexity_bytes(struct plot_point *p, const void *row, const struct plot_data *d);
void perplexity_front(struct plot *p, const struct plot_data *d);

bool speed_point(struct plot_point *p, const void *row, const struct plot_data *d);
void speed_name(char *buf, size_t size, const void *row);
void speed_slowdown(struct plot *p, const struct plot_data *d);

void threads_speedup(struct plot *p, const struct plot_data *d);
void sample_strips(struct plot *p, const struct plot_data *d);
void case_history(struct plot *p, const struct plot_data *d);

/* The same as a table: a row for each case that two runs have, a machine apart, and a column for each
 * run. E_USAGE: there is none. */
enum status history_table(FILE *f, const struct plot_data *d, enum format format, struct err *e);

/* The steps of every case on every machine of d->runs, a line each (see levels.h). Returns the cases
 * whose last step made them slower, and which three runs or more have confirmed. */
int history_steps(FILE *f, const struct plot_data *d);
void memory_parts(struct plot *p, const struct plot_data *d);
void variant_bars(struct plot *p, const struct plot_data *d);
void backend_bars(struct plot *p, const struct plot_data *d);
enum status training_curves(struct plot *p, const struct plot_data *d, struct err *e);
void study_over_budgets(struct plot *p, const struct plot_data *d);
void study_differences(struct plot *p, const struct plot_data *d);
void quality_costs(struct plot *p, const struct plot_data *d);
void quality_front(struct plot *p, const struct plot_data *d);
void study_abilities(struct plot *p, const struct plot_data *d);
enum status study_returns(struct plot *p, const struct plot_data *d, struct err *e);
void change_intervals(struct plot *p, const struct plot_data *d);

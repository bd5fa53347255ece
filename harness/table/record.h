/* SPDX-License-Identifier: MIT
 *
 * The tables on disk: rows as C structs, and one generic writer, reader and printer for all of
 * them, driven by the X-macros of columns.h.
 *
 * Format of the files: RFC 4180, UTF-8, LF, numbers in C-locale notation, base units, empty = not
 * measured. A real is written in the fewest of 15, 16 or 17 digits that read back as the same
 * double; a real that is not finite is not a measurement and is written empty. */
#pragma once

#include "columns.h"
#include "harness/util/fileio.h"

/* Bytes of a text with its NUL, by column type. */
enum { TEXT_SIZE = 128, LINE_SIZE = 1024, PAGE_TEXT_SIZE = 8192 };

/* Of every table. */
#define SCHEMA_VERSION "2.11"

#define I64_EMPTY INT64_MIN
#define REAL_EMPTY ((double)NAN)

#define FIELD_text(name) char name[TEXT_SIZE];
#define FIELD_line(name) char name[LINE_SIZE];
#define FIELD_page(name) char name[PAGE_TEXT_SIZE];
#define FIELD_i64(name) int64_t name;
#define FIELD_real(name) double name;
#define X(type, name, unit, meaning) FIELD_##type(name)
struct key_row { /* the start of latency, memory and perplexity rows */
    KEY_COLUMNS(X)
};
struct latency_row {
    LATENCY_COLUMNS(X)
};
struct memory_row {
    MEMORY_COLUMNS(X)
};
struct perplexity_row {
    PERPLEXITY_COLUMNS(X)
};
struct env_row {
    ENV_COLUMNS(X)
};
struct sample_row {
    SAMPLE_COLUMNS(X)
};
struct train_row {
    TRAIN_COLUMNS(X)
};
struct study_row {
    STUDY_COLUMNS(X)
};
#undef X
#define X(type, name, unit, meaning) KEY_##name,
enum { KEY_COLUMNS(X) KEY_COUNT };
#undef X

enum column_type { COLUMN_TEXT, COLUMN_I64, COLUMN_REAL };
struct column {
    const char *name, *unit, *meaning;
    enum column_type type;
    size_t offset, size; /* bytes, within the row */
};
struct table {
    const char *name, *file, *schema; /* "latency" "latency.csv" "bench-latency/2.0" */
    const struct column *columns;     /* the first is always `schema`, filled by the writer */
    int n;
    size_t row_size;
    const char *counter; /* the column that numbers the rows of a case; NULL: one row per case */
};
enum table_id {
    TABLE_LATENCY,
    TABLE_MEMORY,
    TABLE_PERPLEXITY,
    TABLE_ENV,
    TABLE_SAMPLES,
    TABLE_TRAIN,
    TABLE_STUDY,
    TABLE_COUNT
};
extern const struct table tables[TABLE_COUNT];
enum { COLUMNS_MAX = 144 }; /* no table has more columns */

/* Values of the column `status`. */
enum row_status {
    ROW_OK,
    ROW_SKIPPED,
    ROW_FAILED,
    ROW_WRONG,
    ROW_TIMEOUT,
    ROW_INTERRUPTED,
    ROW_SUSPECT, /* faster than the machine can be: its times are there, and nothing builds on them */
    ROW_STATUS_COUNT
};
extern const char *const row_status_name[ROW_STATUS_COUNT + 1]; /* NULL-terminated */

/* Is the row there to stay? One that was interrupted, failed, timed out or is suspect is measured
 * again by --resume: the reason may have been the moment. */
bool row_is_final(const struct table *t, const void *row);

/* ---- rows --------------------------------------------------------------------------------- */

struct key_row key_row_empty(void);
struct latency_row latency_row_empty(void);
struct memory_row memory_row_empty(void);
struct perplexity_row perplexity_row_empty(void);
struct env_row env_row_empty(void);
struct sample_row sample_row_empty(void);
struct train_row train_row_empty(void);
struct study_row study_row_empty(void);

/* Mark the numbers of an all-zero row as empty. */
void row_clear(void *row, const struct column *columns, size_t n);

/* Copy the key columns into a latency, memory or perplexity row. */
void row_set_key(const struct table *t, void *row, const struct key_row *key);

/* Index of the column with this name, -1 if the table has none. */
int find_column(const struct table *t, const char *name);

/* The text in a column that must exist, of a row of any table. */
const char *row_text(const struct table *t, const void *row, const char *column);

/* A field as it is on disk; num is room for a number. Column 0 is always the table's schema. */
const char *row_field(const struct table *t, int column, const void *row, char num[NUMBER_SIZE]);

/* ---- printing ----------------------------------------------------------------------------- */

/* A selection of columns and their order. */
struct selection {
    int n;
    int at[COLUMNS_MAX];
};

/* By name; n == 0 selects all. E_USAGE names the unknown column and the known ones. */
enum status columns_select(struct selection *s, const struct table *t, const char *const *names,
                           int n, struct err *e);

/* A row, or the names of the columns (`s` NULL: all), as CSV, JSON lines (which have no names) or
 * Markdown. Errors stay in the stream: check with file_flush. */
void row_print(FILE *f, enum format format, const struct table *t, const struct selection *s,
               const void *row);
void row_print_names(FILE *f, enum format format, const struct table *t, const struct selection *s);

/* results/README.md: every column of every table. */
void columns_markdown(FILE *f);

struct rows {
    void *row; /* n rows of table->row_size bytes */
    size_t n;
    size_t doubled; /* rows left out although they were final: two processes wrote, or files were
                     * joined */
};

/* ---- writing ------------------------------------------------------------------------------ */

struct table_file {
    const struct table *table;
    struct appender out;
};

/* Create the file with its header; it must not exist. */
enum status table_create(struct table_file *f, const struct table *t, const char *path,
                         struct err *e);

/* Open it to append: a torn last line is cut, any other bad line is an error, and the header must
 * be this program's. *had (may be NULL) gets its rows. */
enum status table_resume(struct table_file *f, const struct table *t, const char *path,
                         struct rows *had, struct err *e);

/* One write(2), then fdatasync. On E_IO the file still ends with its last whole row. */
enum status table_write(struct table_file *f, const void *row, struct err *e);
enum status table_close(struct table_file *f, struct err *e);

/* Header and n rows, atomically, replacing an existing file. */
enum status table_replace(const struct table *t, const char *path, const void *rows, size_t n,
                          struct err *e);

/* The bytes of the header, or of a row (row not NULL), with the LF. Free data. */
void table_bytes(struct bytes *out, const struct table *t, const void *row);

/* ---- reading ------------------------------------------------------------------------------ */

/* Read a file of any version that this program supports, by column name. Unknown columns are
 * ignored; columns that a file of an older minor version lacks stay empty. E_IO names the file and
 * line of any error.
 *
 * Tables are only appended to. Of the rows of one case_id the last counts, earlier ones are left
 * out. Where the rows of a case are numbered (samples of a case, steps of a training), a row
 * replaces those before it whose number is not smaller than its own. Rows without a case_id are
 * cases of their own. In texts, controls and bytes that are not UTF-8 become escapes, so that
 * whoever prints one need not think of them. An interval of fewer than INTERVAL_SAMPLES samples,
 * which older versions wrote, is none and stays empty. Numbers and words must be in the range of their column
 * (range.h). */
enum status table_read(struct rows *out, const struct table *t, const char *path, struct err *e);
void rows_free(struct rows *r);

/* The same over bytes in memory; `path` is for messages. */
enum status csv_rows(struct rows *out, const struct table *t, const char *path, const char *data,
                     size_t n, struct err *e);

/* Length of data without a torn last line. */
size_t csv_whole(const char *data, size_t n);

/* E_IO unless `found` is of the same kind and major version as `ours`; *minor (may be NULL) gets
 * the file's minor version. */
enum status schema_check(const char *path, const char *ours, const char *found, int *minor,
                         struct err *e);

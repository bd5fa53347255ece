/* SPDX-License-Identifier: MIT
 *
 * The tables on disk: rows as C structs, and one generic writer, reader and printer for all of
 * them, driven by the X-macros of columns.h.
 *
 * The law of the files: RFC 4180, UTF-8, LF, numbers in C-locale notation, base units, empty = not
 * measured. A real is written in the fewest of 15, 16 or 17 digits that read back as the same
 * double; a real that is not finite is not a measurement and is written empty. */
#ifndef RECORD_H
#define RECORD_H

#include "columns.h"
#include "harness/util/fileio.h"

#include <math.h>

/* Bytes of a text with its NUL, by column type. */
enum { TEXT_SIZE = 128, LINE_SIZE = 1024, PAGE_TEXT_SIZE = 8192 };

#define I64_EMPTY INT64_MIN
#define REAL_EMPTY ((double)NAN)

#define FIELD_text(name) char name[TEXT_SIZE];
#define FIELD_line(name) char name[LINE_SIZE];
#define FIELD_page(name) char name[PAGE_TEXT_SIZE];
#define FIELD_i64(name) int64_t name;
#define FIELD_real(name) double name;
#define X(type, name, unit, meaning) FIELD_##type(name)
struct key_row { /* the part that latency, memory and perplexity rows begin with */
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
#undef X
#define X(type, name, unit, meaning) KEY_##name,
enum { KEY_COLUMNS(X) KEY_COUNT };
#undef X

enum column_type { COLUMN_TEXT, COLUMN_I64, COLUMN_REAL };
struct column {
    const char *name, *unit, *meaning;
    enum column_type type;
    size_t offset, size; /* bytes, in the row */
};
struct table {
    const char *name, *file, *schema; /* "latency" "latency.csv" "bench-latency/2.0" */
    const struct column *columns;     /* the first is always `schema`, filled by the writer */
    int n;
    size_t row_size;
};
enum table_id {
    TABLE_LATENCY,
    TABLE_MEMORY,
    TABLE_PERPLEXITY,
    TABLE_ENV,
    TABLE_SAMPLES,
    TABLE_TRAIN,
    TABLE_COUNT
};
extern const struct table tables[TABLE_COUNT];
enum { COLUMNS_MAX = 96 }; /* at least the columns of any table */

/* Words of the column `status`. */
enum row_status {
    ROW_OK,
    ROW_SKIPPED,
    ROW_FAILED,
    ROW_WRONG,
    ROW_TIMEOUT,
    ROW_INTERRUPTED,
    ROW_STATUS_COUNT
};
extern const char *const row_status_name[ROW_STATUS_COUNT];

/* ---- rows --------------------------------------------------------------------------------- */

struct key_row key_row_empty(void);
struct latency_row latency_row_empty(void);
struct memory_row memory_row_empty(void);
struct perplexity_row perplexity_row_empty(void);
struct env_row env_row_empty(void);
struct sample_row sample_row_empty(void);
struct train_row train_row_empty(void);

/* Empty the numbers of a row that is all zero bytes. */
void row_clear(void *row, const struct column *columns, size_t n);

/* Copy the key columns into a latency, memory or perplexity row. */
void row_set_key(const struct table *t, void *row, const struct key_row *key);

/* The text in a column that must exist, of any row. */
const char *row_text(const struct table *t, const void *row, const char *column);

/* What a field holds on disk; num is room for a number. Column 0 is always the table's schema. */
enum { NUMBER_SIZE = 32 };
const char *row_field(const struct table *t, int column, const void *row, char num[NUMBER_SIZE]);

/* Fill a text column: control characters become spaces, so that a row is one line, and bytes that
 * are not UTF-8 become '?'. False where the text had to be cut (never inside a character). */
bool text_put(char *dst, size_t size, const char *src);

/* ---- printing ----------------------------------------------------------------------------- */

/* Which columns, in which order. */
struct selection {
    int n;
    int at[COLUMNS_MAX];
};

/* By name; n == 0 selects all. E_USAGE names the unknown column and the known ones. */
enum status columns_select(struct selection *s, const struct table *t, const char *const *names,
                           int n, struct err *e);

/* Errors stay in the stream: ask file_flush. */
void print_csv_header(FILE *f, const struct table *t, const struct selection *s);
void print_csv_row(FILE *f, const struct table *t, const struct selection *s, const void *row);
void print_jsonl_row(FILE *f, const struct table *t, const struct selection *s, const void *row);
void print_md_header(FILE *f, const struct table *t, const struct selection *s);
void print_md_row(FILE *f, const struct table *t, const struct selection *s, const void *row);

/* results/README.md: every column of every table. */
void columns_markdown(FILE *f);

/* ---- writing ------------------------------------------------------------------------------ */

struct table_file {
    const struct table *table;
    struct appender out;
};

/* Make DIR/NAME.csv with its header; it must not exist. */
enum status table_create(struct table_file *f, const struct table *t, const char *dir,
                         struct err *e);

/* Open it to append: a torn last line is cut, any other bad line is an error, and the header must
 * be this program's. */
enum status table_resume(struct table_file *f, const struct table *t, const char *dir,
                         struct err *e);

/* One write(2), then fdatasync. On E_IO the file still ends with its last whole row. */
enum status table_write(struct table_file *f, const void *row, struct err *e);
enum status table_close(struct table_file *f, struct err *e);

/* Header and n rows, atomically, whatever was there before. */
enum status table_replace(const struct table *t, const char *path, const void *rows, size_t n,
                          struct err *e);

/* The bytes of the header, or of a row (row not NULL), with the LF. Free data. */
enum status table_bytes(struct bytes *out, const struct table *t, const void *row, struct err *e);

/* ---- reading ------------------------------------------------------------------------------ */

struct rows {
    void *row; /* n rows of table->row_size bytes */
    size_t n;
};

/* Read a file by column name. Unknown columns, those of a newer minor version, are ignored; each of
 * ours must be there. E_IO names file and line of whatever is not right. */
enum status table_read(struct rows *out, const struct table *t, const char *path, struct err *e);
void rows_free(struct rows *r);

/* The same over bytes that already are in memory; `path` is for messages. `line` are the bytes of
 * the row with its LF; the header comes first, with row == NULL. */
typedef enum status row_fn(void *arg, const void *row, const char *line, size_t n, struct err *e);
enum status csv_each(const struct table *t, const char *path, const char *data, size_t n,
                     row_fn *each, void *arg, struct err *e);
enum status csv_rows(struct rows *out, const struct table *t, const char *path, const char *data,
                     size_t n, struct err *e);

/* Length of data without a torn last line. */
size_t csv_whole(const char *data, size_t n);

/* Cut a torn last line of the file; *cut (may be NULL) is how many bytes it had. */
enum status table_cut_torn(const char *path, size_t *cut, struct err *e);

/* Atomically drop the rows for which `drop` says so; the others keep their bytes. Cuts a torn last
 * line. Not while a table_file is open on it. */
typedef bool drop_fn(void *arg, const struct table *t, const void *row);
enum status table_rewrite_without(const struct table *t, const char *path, drop_fn *drop, void *arg,
                                  size_t *dropped, struct err *e);

/* E_IO unless `found` is of the same kind and major version as `ours`. */
enum status schema_check(const char *path, const char *ours, const char *found, struct err *e);

#endif

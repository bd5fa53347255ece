/* SPDX-License-Identifier: MIT
 *
 * Tables and rows: columns.h as data, numbers as text, and rows to disk. */
#include "record.h"

#include <inttypes.h>
#include <locale.h>

#define TYPE_text COLUMN_TEXT
#define TYPE_line COLUMN_TEXT
#define TYPE_page COLUMN_TEXT
#define TYPE_i64 COLUMN_I64
#define TYPE_real COLUMN_REAL
#define X(type, name, unit, meaning)                                                               \
    {#name,                                                                                        \
     unit,                                                                                         \
     meaning,                                                                                      \
     TYPE_##type,                                                                                  \
     offsetof(struct ROW, name),                                                                   \
     sizeof(((struct ROW *)0)->name)},
#define ROW key_row
static const struct column key_columns[] = {KEY_COLUMNS(X)};
#undef ROW
#define ROW latency_row
static const struct column latency_columns[] = {LATENCY_COLUMNS(X)};
#undef ROW
#define ROW memory_row
static const struct column memory_columns[] = {MEMORY_COLUMNS(X)};
#undef ROW
#define ROW perplexity_row
static const struct column perplexity_columns[] = {PERPLEXITY_COLUMNS(X)};
#undef ROW
#define ROW env_row
static const struct column env_columns[] = {ENV_COLUMNS(X)};
#undef ROW
#define ROW sample_row
static const struct column sample_columns[] = {SAMPLE_COLUMNS(X)};
#undef ROW
#define ROW train_row
static const struct column train_columns[] = {TRAIN_COLUMNS(X)};
#undef ROW
#define ROW study_row
static const struct column study_columns[] = {STUDY_COLUMNS(X)};
#undef ROW
#undef X

#define TABLE(word, columns, row, counter)                                                         \
    {                                                                                              \
        word, word ".csv", "bench-" word "/" SCHEMA_VERSION, columns, ARRAY_LEN(columns),          \
            sizeof(struct row), counter                                                            \
    }
const struct table tables[TABLE_COUNT] = {
    [TABLE_LATENCY] = TABLE("latency", latency_columns, latency_row, NULL),
    [TABLE_MEMORY] = TABLE("memory", memory_columns, memory_row, NULL),
    [TABLE_PERPLEXITY] = TABLE("perplexity", perplexity_columns, perplexity_row, NULL),
    [TABLE_ENV] = TABLE("env", env_columns, env_row, NULL),
    [TABLE_SAMPLES] = TABLE("samples", sample_columns, sample_row, "sample"),
    [TABLE_TRAIN] = TABLE("train", train_columns, train_row, "step"),
    [TABLE_STUDY] = TABLE("study", study_columns, study_row, NULL),
};
_Static_assert(ARRAY_LEN(latency_columns) <= COLUMNS_MAX && ARRAY_LEN(env_columns) <= COLUMNS_MAX &&
                   ARRAY_LEN(memory_columns) <= COLUMNS_MAX &&
                   ARRAY_LEN(perplexity_columns) <= COLUMNS_MAX,
               "a selection holds every column");

const char *const row_status_name[ROW_STATUS_COUNT + 1] = {
    "ok", "skipped", "failed", "wrong", "timeout", "interrupted", "suspect"};

void row_clear(void *row, const struct column *columns, size_t n)
{
    const int64_t no_count = I64_EMPTY;
    const double no_number = REAL_EMPTY;

    for (const struct column *c = columns; c < columns + n; c++) {
        char *at = (char *)row + c->offset;
        if (c->type == COLUMN_I64)
            memcpy(at, &no_count, sizeof(no_count));
        else if (c->type == COLUMN_REAL)
            memcpy(at, &no_number, sizeof(no_number));
    }
}

#define EMPTY_ROW(name, columns)                                                                   \
    struct name name##_empty(void)                                                                 \
    {                                                                                              \
        struct name row = {0};                                                                     \
        row_clear(&row, columns, ARRAY_LEN(columns));                                              \
        return row;                                                                                \
    }
EMPTY_ROW(key_row, key_columns)
EMPTY_ROW(latency_row, latency_columns)
EMPTY_ROW(memory_row, memory_columns)
EMPTY_ROW(perplexity_row, perplexity_columns)
EMPTY_ROW(env_row, env_columns)
EMPTY_ROW(sample_row, sample_columns)
EMPTY_ROW(train_row, train_columns)
EMPTY_ROW(study_row, study_columns)

/* Rows that begin with key columns have them at the same offsets. */
void row_set_key(const struct table *t, void *row, const struct key_row *key)
{
    const struct column *const last = &key_columns[ARRAY_LEN(key_columns) - 1];

    CHECK(t->n >= (int)ARRAY_LEN(key_columns));
    for (size_t i = 0; i < ARRAY_LEN(key_columns); i++)
        CHECK(strcmp(key_columns[i].name, t->columns[i].name) == 0 &&
              key_columns[i].offset == t->columns[i].offset);
    memcpy(row, key, last->offset + last->size);
}

int find_column(const struct table *t, const char *name)
{
    for (int i = 0; i < t->n; i++)
        if (strcmp(t->columns[i].name, name) == 0)
            return i;
    return -1;
}

const char *row_text(const struct table *t, const void *row, const char *column)
{
    const int i = find_column(t, column);

    CHECK(i >= 0 && t->columns[i].type == COLUMN_TEXT);
    return (const char *)row + t->columns[i].offset;
}

bool row_is_final(const struct table *t, const void *row)
{
    const int status = word_index(row_text(t, row, "status"), row_status_name);

    return status != ROW_INTERRUPTED && status != ROW_FAILED && status != ROW_TIMEOUT &&
           status != ROW_SUSPECT;
}

/* The shortest of 15, 16, 17 digits that reads back as x, with a decimal point in every locale. */
static void format_real(char num[NUMBER_SIZE], double x)
{
    const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const locale_t before = uselocale(c);

    for (int digits = 15; digits <= 17; digits++) {
        snprintf(num, NUMBER_SIZE, "%.*g", digits, x);
        if (strtod(num, NULL) == x)
            break;
    }
    uselocale(before);
    freelocale(c);
}

const char *row_field(const struct table *t, int column, const void *row, char num[NUMBER_SIZE])
{
    const struct column *c = &t->columns[column];
    const char *at = (const char *)row + c->offset;
    int64_t count;
    double x;

    if (column == 0)
        return t->schema;
    num[0] = '\0';
    switch (c->type) {
    case COLUMN_TEXT:
        return at;
    case COLUMN_I64:
        memcpy(&count, at, sizeof(count));
        if (count != I64_EMPTY)
            snprintf(num, NUMBER_SIZE, "%" PRId64, count);
        return num;
    case COLUMN_REAL:
        memcpy(&x, at, sizeof(x));
        if (isfinite(x))
            format_real(num, x);
        return num;
    }
    return num;
}

/* Header (row == NULL) or row as CSV into f. */
static void print_line(FILE *f, const struct table *t, const void *row)
{
    if (row)
        row_print(f, FORMAT_CSV, t, NULL, row);
    else
        row_print_names(f, FORMAT_CSV, t, NULL);
}

void table_bytes(struct bytes *out, const struct table *t, const void *row)
{
    FILE *const f = bytes_begin(out);

    print_line(f, t, row);
    bytes_end(f, out);
}

enum status table_write(struct table_file *f, const void *row, struct err *e)
{
    struct bytes line;

    table_bytes(&line, f->table, row);
    append_write(&f->out, line.data, line.n);
    append_sync(&f->out);
    free(line.data);
    return append_status(&f->out, e);
}

enum status table_create(struct table_file *f, const struct table *t, const char *path,
                         struct err *e)
{
    *f = (struct table_file){.table = t, .out = {.fd = -1}};
    enum status st = append_open(&f->out, path, true, e);
    if (st == OK)
        st = table_write(f, NULL, e);
    if (st != OK)
        append_close(&f->out, NULL);
    return st;
}

/* Appending under another header would put numbers into the wrong columns. */
static enum status check_header(const struct table *t, const char *path, const struct bytes *file,
                                struct err *e)
{
    struct bytes header;

    table_bytes(&header, t, NULL);
    const bool ours = file->n >= header.n && memcmp(file->data, header.data, header.n) == 0;
    free(header.data);
    return ours ? OK
                : fail(e, E_IO,
                       "cannot append to %s: its header is not this program's  -> start a new run",
                       path);
}

/* What is whole of the file is kept; one that was killed before its header was written gets it. */
static enum status resume(struct table_file *f, const char *path, struct bytes *file,
                          struct rows *rows, struct err *e)
{
    file->n = csv_whole(file->data, file->n);
    if (file->n > 0) {
        TRY(csv_rows(rows, f->table, path, file->data, file->n, e));
        TRY(check_header(f->table, path, file, e));
    }
    TRY(append_open(&f->out, path, false, e));
    append_cut(&f->out, (off_t)file->n);
    if (file->n == 0)
        TRY(table_write(f, NULL, e));
    return append_status(&f->out, e);
}

enum status table_resume(struct table_file *f, const struct table *t, const char *path,
                         struct rows *had, struct err *e)
{
    struct bytes file;
    struct rows rows = {0};

    *f = (struct table_file){.table = t, .out = {.fd = -1}};
    TRY(file_read(&file, path, e));
    const enum status st = resume(f, path, &file, &rows, e);
    free(file.data);
    if (st != OK)
        append_close(&f->out, NULL);
    if (st == OK && had)
        *had = rows;
    else
        rows_free(&rows);
    return st;
}

enum status table_close(struct table_file *f, struct err *e) { return append_close(&f->out, e); }

enum status table_replace(const struct table *t, const char *path, const void *rows, size_t n,
                          struct err *e)
{
    struct bytes text;
    FILE *const f = bytes_open(&text, e);

    if (!f)
        return E_NOMEM;
    print_line(f, t, NULL);
    for (size_t i = 0; i < n; i++)
        print_line(f, t, (const char *)rows + i * t->row_size);

    enum status st = bytes_close(f, &text, e);
    if (st == OK)
        st = file_replace(path, text.data, text.n, e);
    free(text.data);
    return st;
}

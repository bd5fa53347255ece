/* SPDX-License-Identifier: MIT
 *
 * Tables from disk. libcsv splits the fields; what it accepts but the format does not (a torn last
 * row, blank lines, bare carriage returns) is checked here on the bytes, one line at a time, so
 * that every message has a line number. */
#include "range.h"
#include "remarks.h"

#include "variants/base/printable.h"

#include <csv.h>
#include <locale.h>

enum { FIELDS_MAX = 512 }; /* per file: room for columns that later versions add */

struct reader {
    const struct table *table;
    const char *path;
    size_t line;            /* first line of the current row, from 1 */
    int column[FIELDS_MAX]; /* table column of each field of the file, -1 = unknown */
    int width;              /* fields of the header; 0 before it is read */
    bool present[COLUMNS_MAX];
    struct column_range range[COLUMNS_MAX];
    int field;      /* of the current row */
    int rows_ended; /* rows ended by the current line: must become 1 */
    int minor;      /* of the schema; 0 before the first row */
    char *row;
    enum status st; /* first error of the current line */
    struct err *e;
    locale_t c_locale;
};

enum status schema_check(const char *path, const char *ours, const char *found, int *minor,
                         struct err *e)
{
    const char *slash = strchr(ours, '/');
    const size_t kind = (size_t)(slash - ours) + 1;
    const long major = strtol(slash + 1, NULL, 10);
    const bool alike = strncmp(found, ours, kind) == 0 && found[kind] >= '0' && found[kind] <= '9';
    char *end = "";

    errno = 0;
    const long found_major = alike ? strtol(found + kind, &end, 10) : -1;
    const char *const rest = end;
    const long found_minor = *rest == '.' ? strtol(rest + 1, &end, 10) : -1;
    if (errno || *end != '\0' || end == rest + 1 || found_minor < 0 || found_minor > INT32_MAX)
        return fail(e, E_IO, "%s has schema \"%.63s\", not %s  -> give the table of a run", path,
                    found, ours);
    if (found_major != major)
        return fail(e, E_IO,
                    "%s has schema %.63s, this program reads %ld.x  -> measure again, or read it "
                    "with the version that wrote it",
                    path, found, major);
    if (minor)
        *minor = (int)found_minor;
    return OK;
}

static enum status bad_line(struct reader *r, const char *what)
{
    return fail(r->e, E_IO, "%s line %zu: %s  -> correct or remove that line", r->path, r->line,
                what);
}

static void read_name(struct reader *r, const char *name)
{
    const struct table *t = r->table;
    const int found = find_column(t, name);

    if (r->field >= FIELDS_MAX) {
        r->st = bad_line(r, "too many columns");
        return;
    }
    if (found >= 0 && r->present[found])
        r->st = fail(r->e, E_IO, "%s line 1: column %s twice  -> give a table of bench", r->path,
                     t->columns[found].name);
    if (found >= 0) {
        r->present[found] = true;
        r->range[found] = column_range(&t->columns[found]);
    }
    r->column[r->field] = found;
}

static enum status bad_value(struct reader *r, const struct column *c, const char *text,
                             const char *wanted)
{
    return fail(r->e, E_IO,
                "%s line %zu, column %s: \"%.60s\" is not %s  -> correct or remove that line",
                r->path, r->line, c->name, text, wanted);
}

/* Plain decimal notation only: no spaces, no sign but minus, no hexadecimal, no inf or nan. */
static bool plain_number(const char *text, const char *letters)
{
    const char *digits = text + (text[0] == '-');
    return digits[0] >= '0' && digits[0] <= '9' && digits[strspn(digits, letters)] == '\0';
}

static enum status out_of_range(struct reader *r, int column, const char *text)
{
    char wanted[128];

    column_range_text(&r->range[column], wanted, sizeof(wanted));
    return bad_value(r, &r->table->columns[column], text, wanted);
}

static bool in_range(const struct column_range *range, double x)
{
    return x >= range->least && x <= range->most;
}

static enum status read_text(struct reader *r, int column, const char *text, size_t length)
{
    const struct column *const c = &r->table->columns[column];
    const char *const *const words = r->range[column].words;

    if (length >= c->size)
        return fail(r->e, E_IO, "%s line %zu, column %s: %zu bytes, at most %zu  -> shorten it",
                    r->path, r->line, c->name, length, c->size - 1);
    if (words && *text && word_index(text, words) < 0)
        return out_of_range(r, column, text);
    printable_copy(r->row + c->offset, c->size, text);
    return OK;
}

static enum status read_value(struct reader *r, int column, const char *text, size_t length)
{
    const struct column *const c = &r->table->columns[column];
    char *at = r->row + c->offset, *end = NULL;

    if (c->type == COLUMN_TEXT)
        return read_text(r, column, text, length);
    if (length == 0)
        return OK; /* the row starts empty */
    errno = 0;
    if (c->type == COLUMN_I64) {
        const long long count = strtoll(text, &end, 10);
        if (!plain_number(text, "0123456789") || *end || errno || count == I64_EMPTY)
            return bad_value(r, c, text, "a whole number");
        memcpy(at, &(int64_t){count}, sizeof(int64_t));
        return in_range(&r->range[column], (double)count) ? OK : out_of_range(r, column, text);
    }
    const double x = strtod_l(text, &end, r->c_locale);
    if (!plain_number(text, "0123456789.eE+-") || *end || !isfinite(x))
        return bad_value(r, c, text, "a number");
    memcpy(at, &x, sizeof(x));
    return in_range(&r->range[column], x) ? OK : out_of_range(r, column, text);
}

/* libcsv ends the field with a NUL (CSV_APPEND_NULL). */
static void on_field(void *data, size_t length, void *arg)
{
    struct reader *r = arg;

    if (r->st == OK && r->rows_ended == 0) {
        if (r->width == 0) {
            read_name(r, data);
        } else if (r->field < r->width && r->column[r->field] >= 0) {
            const int i = r->column[r->field];
            r->st = read_value(r, i, data, length);
            if (i == 0 && r->st == OK)
                r->st = schema_check(r->path, r->table->schema, data, &r->minor, r->e);
        }
    }
    r->field++;
}

static void on_row(int end, void *arg) { ((struct reader *)arg)->rows_ended++; }

/* A file of an older minor version may lack later columns. Without rows the version is unknown and
 * counts as the oldest. */
static enum status check_columns(struct reader *r)
{
    const struct table *t = r->table;
    const long ours = strtol(strrchr(t->schema, '.') + 1, NULL, 10);

    for (int i = 0; i < t->n; i++)
        if (!r->present[i] && (i == 0 || r->minor >= ours))
            return fail(r->e, E_IO, "%s line 1: no column %s  -> give a %s table of bench", r->path,
                        t->columns[i].name, t->name);
    return OK;
}

/* Bytes of the row at s, up to the LF that is not inside quotes; 0 if there is none. *lines counts
 * the LFs. */
static size_t row_length(const char *s, size_t n, size_t *lines)
{
    bool quoted = false;

    *lines = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '"')
            quoted = !quoted;
        if (s[i] != '\n')
            continue;
        ++*lines;
        if (!quoted)
            return i + 1;
    }
    return 0;
}

/* One header or row: `n` bytes including the LF. */
static enum status read_line(struct reader *r, struct csv_parser *p, const char *line, size_t n)
{
    const bool header = r->width == 0;

    r->field = r->rows_ended = 0;
    r->st = OK;
    memset(r->row, 0, r->table->row_size);
    row_clear(r->row, r->table->columns, (size_t)r->table->n);
    if (memchr(line, '\0', n))
        return bad_line(r, "a NUL byte");
    if (csv_parse(p, line, n, on_field, on_row, r) != n)
        return bad_line(r, csv_error(p) == CSV_EPARSE ? "a quote in the wrong place"
                                                      : csv_strerror(csv_error(p)));
    if (r->rows_ended != 1)
        return bad_line(r, r->rows_ended ? "a bare carriage return" : "blank");
    if (!header && r->field != r->width)
        return fail(r->e, E_IO,
                    "%s line %zu: %d fields, header has %d  -> correct or remove that line",
                    r->path, r->line, r->field, r->width);
    TRY(r->st);
    if (header)
        r->width = r->field;
    return header && r->present[0] ? OK : check_columns(r);
}

static int no_space(unsigned char c) { return 0; }

/* ---- rows that count ---------------------------------------------------------------------- */

/* The case of a row, and its number within the case. */
struct place {
    const char *case_id;
    int64_t number;
    size_t at;
};

static int place_order(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    const int by_case = strcmp(x->case_id, y->case_id);

    return by_case ? by_case : (x->at > y->at) - (x->at < y->at);
}

/* Leave out rows that later ones replace. */
static enum status keep_last(struct rows *rows, const struct table *t, struct err *e)
{
    const int id = find_column(t, "case_id"), number = t->counter ? find_column(t, t->counter) : -1;
    struct place *place = calloc(rows->n + 1, sizeof(*place));
    bool *gone = calloc(rows->n + 1, sizeof(*gone));
    size_t kept = 0;
    int64_t least = 0;

    if (!place || !gone) {
        free(place);
        free(gone);
        return fail(e, E_NOMEM, "no memory for %zu rows", rows->n);
    }
    for (size_t i = 0; i < rows->n; i++) {
        const char *const row = (const char *)rows->row + i * t->row_size;
        place[i] = (struct place){id < 0 ? "" : row + t->columns[id].offset, 0, i};
        if (number >= 0)
            memcpy(&place[i].number, row + t->columns[number].offset, sizeof(int64_t));
    }
    if (id >= 0)
        qsort(place, rows->n, sizeof(*place), place_order);
    for (size_t i = rows->n; i-- > 0;) {
        const struct place *p = &place[i];
        const bool last = i + 1 == rows->n || strcmp(p->case_id, p[1].case_id) != 0;
        gone[p->at] = !last && p->number >= least && (id < 0 || *p->case_id);
        least = last || p->number < least ? p->number : least;
    }
    for (size_t i = 0; i < rows->n; i++) {
        char *const row = (char *)rows->row + i * t->row_size;
        rows->doubled += gone[i] && find_column(t, "status") >= 0 && row_is_final(t, row);
        if (!gone[i] && kept++ < i)
            memcpy((char *)rows->row + (kept - 1) * t->row_size, row, t->row_size);
    }
    rows->n = kept;
    free(place);
    free(gone);
    return OK;
}

/* ---- files -------------------------------------------------------------------------------- */

static enum status read_rows(struct reader *r, struct csv_parser *p, struct rows *out,
                             const char *data, size_t n)
{
    const size_t row_size = r->table->row_size;

    for (size_t at = 0, lines = 0; at < n; r->line += lines) {
        const size_t length = row_length(data + at, n - at, &lines);
        if (length == 0)
            return fail(r->e, E_IO, "%s line %zu: %s", r->path, r->line,
                        lines ? "a quote is not closed  -> correct or remove that line"
                              : "the file ends inside it  -> cut it off with --resume");
        const bool header = r->width == 0;
        TRY(read_line(r, p, data + at, length));
        at += length;
        if (header)
            continue;
        TRY(grow_array(&out->row, out->n, row_size, r->e));
        memcpy((char *)out->row + out->n++ * row_size, r->row, row_size);
    }
    return check_columns(r);
}

enum status csv_rows(struct rows *out, const struct table *t, const char *path, const char *data,
                     size_t n, struct err *e)
{
    struct reader r = {.table = t, .path = path, .line = 1, .e = e};
    struct csv_parser p;

    *out = (struct rows){0};
    if (n == 0)
        return fail(e, E_IO, "%s is empty  -> remove it, or give another run", path);
    if (csv_init(&p, CSV_STRICT | CSV_STRICT_FINI | CSV_APPEND_NULL) != 0)
        return fail(e, E_NOMEM, "no memory to read %s", path);
    csv_set_space_func(&p, no_space); /* RFC 4180: spaces are part of a field */
    r.c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    r.row = need_room(1, t->row_size);
    enum status st = read_rows(&r, &p, out, data, n);
    if (st == OK && (t->counter || find_column(t, "case_id") >= 0))
        st = keep_last(out, t, e);
    if (st != OK)
        rows_free(out);
    free(r.row);
    freelocale(r.c_locale);
    csv_free(&p);
    return st;
}

/* Older versions wrote the range of few samples as an interval. */
static void drop_ranges(const struct rows *r)
{
    struct latency_row *const row = r->row;

    for (size_t i = 0; i < r->n; i++)
        if (row[i].samples != I64_EMPTY && row[i].samples < INTERVAL_SAMPLES)
            row[i].ci95_low_ns = row[i].ci95_high_ns = NAN;
}

enum status table_read(struct rows *out, const struct table *t, const char *path, struct err *e)
{
    struct bytes file;

    *out = (struct rows){0};
    TRY(file_read(&file, path, e));
    const enum status st = csv_rows(out, t, path, file.data, file.n, e);
    if (t == &tables[TABLE_LATENCY])
        drop_ranges(out);
    free(file.data);
    return st;
}

void rows_free(struct rows *r)
{
    free(r->row);
    *r = (struct rows){0};
}

size_t csv_whole(const char *data, size_t n)
{
    while (n > 0 && data[n - 1] != '\n')
        n--;
    return n;
}

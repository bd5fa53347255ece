/* SPDX-License-Identifier: MIT
 *
 * Tables from disk. libcsv splits the fields; what it lets pass (a torn last row, blank lines, bare
 * carriage returns) is checked here on the bytes, one line at a time, so that every message has
 * the number of its line. */
#include "harness/util/grow.h"
#include "record.h"

#include <csv.h>
#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIELDS_MAX = 512 }; /* of a file: room for columns that later versions add */

struct reader {
    const struct table *table;
    const char *path;
    size_t line;            /* first line of the current row, from 1 */
    int column[FIELDS_MAX]; /* table column of each field of the file, -1 = unknown */
    int width;              /* fields of the header; 0 before it */
    bool present[COLUMNS_MAX];
    int field;      /* of the current row */
    int rows_ended; /* by the current line's bytes: must become 1 */
    int minor;      /* of the schema; 0 before the first row */
    char *row;
    enum status st; /* first fault of the current line */
    struct err *e;
    locale_t c_locale;
};

enum status schema_check(const char *path, const char *ours, const char *found, int *minor,
                         struct err *e)
{
    const char *slash = strchr(ours, '/');
    const size_t kind = (size_t)(slash - ours) + 1;
    const long major = strtol(slash + 1, NULL, 10);
    char *end = NULL;

    if (strncmp(found, ours, kind) != 0 || found[kind] < '0' || found[kind] > '9')
        return fail(e, E_IO, "%s has schema \"%.63s\", not %s", path, found, ours);
    errno = 0;
    const long found_major = strtol(found + kind, &end, 10);
    const char *rest = end;
    const long found_minor = *rest == '.' ? strtol(rest + 1, &end, 10) : -1;
    if (errno || *end != '\0' || end == rest + 1 || found_minor < 0 || found_minor > INT32_MAX)
        return fail(e, E_IO, "%s has schema \"%.63s\", not %s", path, found, ours);
    if (found_major != major)
        return fail(e, E_IO, "%s has schema %.63s, this program reads %ld.x", path, found, major);
    if (minor)
        *minor = (int)found_minor;
    return OK;
}

static int our_minor(const struct table *t)
{
    return (int)strtol(strrchr(t->schema, '.') + 1, NULL, 10);
}

static enum status bad_line(struct reader *r, const char *what)
{
    return fail(r->e, E_IO, "%s line %zu: %s  -> mend or remove that line", r->path, r->line, what);
}

static void read_name(struct reader *r, const char *name, size_t length)
{
    const struct table *t = r->table;
    int found = -1;

    if (r->field >= FIELDS_MAX) {
        r->st = bad_line(r, "too many columns");
        return;
    }
    for (int i = 0; i < t->n && found < 0; i++)
        if (strlen(t->columns[i].name) == length && memcmp(t->columns[i].name, name, length) == 0)
            found = i;
    if (found >= 0 && r->present[found])
        r->st = fail(r->e, E_IO, "%s line 1: column %s twice  -> this is no table of bench",
                     r->path, t->columns[found].name);
    if (found >= 0)
        r->present[found] = true;
    r->column[r->field] = found;
}

static enum status bad_value(struct reader *r, const struct column *c, const char *text,
                             const char *wanted)
{
    return fail(r->e, E_IO,
                "%s line %zu, column %s: \"%.60s\" is not %s  -> mend or remove that line", r->path,
                r->line, c->name, text, wanted);
}

/* Plain decimal notation only: no spaces, no signs but minus, no hexadecimal, no inf or nan. */
static bool plain_number(const char *text, const char *letters)
{
    const char *digits = text + (text[0] == '-');
    return digits[0] >= '0' && digits[0] <= '9' && digits[strspn(digits, letters)] == '\0';
}

static enum status read_value(struct reader *r, const struct column *c, const char *text,
                              size_t length)
{
    char *at = r->row + c->offset, *end = NULL;

    if (c->type == COLUMN_TEXT) {
        if (length >= c->size)
            return fail(r->e, E_IO, "%s line %zu, column %s: %zu bytes, at most %zu", r->path,
                        r->line, c->name, length, c->size - 1);
        memcpy(at, text, length);
        at[length] = '\0';
        return OK;
    }
    if (length == 0)
        return OK; /* the row was made empty */
    errno = 0;
    if (c->type == COLUMN_I64) {
        const long long count = strtoll(text, &end, 10);
        if (!plain_number(text, "0123456789") || *end || errno || count == I64_EMPTY)
            return bad_value(r, c, text, "a whole number");
        memcpy(at, &(int64_t){count}, sizeof(int64_t));
        return OK;
    }
    const double x = strtod_l(text, &end, r->c_locale);
    if (!plain_number(text, "0123456789.eE+-") || *end || !isfinite(x))
        return bad_value(r, c, text, "a number");
    memcpy(at, &x, sizeof(x));
    return OK;
}

/* libcsv ends the field with a NUL (CSV_APPEND_NULL). */
static void on_field(void *data, size_t length, void *arg)
{
    struct reader *r = arg;

    if (r->st == OK && r->rows_ended == 0) {
        if (r->width == 0) {
            read_name(r, data, length);
        } else if (r->field < r->width && r->column[r->field] >= 0) {
            const int i = r->column[r->field];
            r->st = read_value(r, &r->table->columns[i], data, length);
            if (i == 0 && r->st == OK)
                r->st = schema_check(r->path, r->table->schema, data, &r->minor, r->e);
        }
    }
    r->field++;
}

static void on_row(int end, void *arg)
{
    (void)end;
    ((struct reader *)arg)->rows_ended++;
}

/* A file of an older minor version may lack columns that came later. One without rows does not say
 * its version: it counts as the oldest. */
static enum status check_columns(struct reader *r)
{
    const struct table *t = r->table;
    for (int i = 0; i < t->n; i++)
        if (!r->present[i] && (i == 0 || r->minor >= our_minor(t)))
            return fail(r->e, E_IO, "%s line 1: no column %s  -> this is no %s table of bench",
                        r->path, t->columns[i].name, t->name);
    return OK;
}

/* Bytes of the row at s, through the LF that is not inside quotes; 0 where there is none. *lines
 * counts the LFs. */
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

/* One header or row: `n` bytes with their LF. */
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
        return fail(r->e, E_IO, "%s line %zu: %d fields, header has %d", r->path, r->line, r->field,
                    r->width);
    if (r->st != OK)
        return r->st;
    if (header) {
        r->width = r->field;
        return r->present[0] ? OK : check_columns(r);
    }
    return check_columns(r);
}

static int no_space(unsigned char c)
{
    (void)c;
    return 0;
}

enum status csv_each(const struct table *t, const char *path, const char *data, size_t n,
                     row_fn *each, void *arg, struct err *e)
{
    struct reader r = {.table = t, .path = path, .line = 1, .e = e};
    struct csv_parser p;
    enum status st = OK;

    if (n == 0)
        return fail(e, E_IO, "%s is empty  -> remove it, or give another run", path);
    if (csv_init(&p, CSV_STRICT | CSV_STRICT_FINI | CSV_APPEND_NULL) != 0)
        return fail(e, E_NOMEM, "no memory to read %s", path);
    csv_set_space_func(&p, no_space); /* RFC 4180: spaces are part of a field */
    r.c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    r.row = malloc(t->row_size);
    if (!r.row) {
        st = fail(e, E_NOMEM, "no memory to read %s", path);
        goto out;
    }
    for (size_t at = 0, lines = 0; st == OK && at < n; r.line += lines) {
        const size_t length = row_length(data + at, n - at, &lines);
        if (length == 0) {
            st = fail(e, E_IO, "%s line %zu: %s", path, r.line,
                      lines ? "a quote without its end  -> mend or remove that line"
                            : "torn, the file ends inside it  -> --resume cuts it off");
            break;
        }
        const bool header = r.width == 0;
        st = read_line(&r, &p, data + at, length);
        if (st == OK)
            st = each(arg, header ? NULL : r.row, data + at, length, e);
        at += length;
    }
    if (st == OK)
        st = check_columns(&r);
out:
    free(r.row);
    freelocale(r.c_locale);
    csv_free(&p);
    return st;
}

struct growing {
    struct rows rows;
    size_t row_size;
};

static enum status keep_row(void *arg, const void *row, const char *line, size_t n, struct err *e)
{
    struct growing *g = arg;
    const enum status st = row ? grow_array(&g->rows.row, g->rows.n, g->row_size, e) : OK;
    (void)line;
    (void)n;

    if (row && st == OK)
        memcpy((char *)g->rows.row + g->rows.n++ * g->row_size, row, g->row_size);
    return st;
}

enum status csv_rows(struct rows *out, const struct table *t, const char *path, const char *data,
                     size_t n, struct err *e)
{
    struct growing g = {.row_size = t->row_size};
    const enum status st = csv_each(t, path, data, n, keep_row, &g, e);

    if (st != OK)
        rows_free(&g.rows);
    *out = g.rows;
    return st;
}

enum status table_read(struct rows *out, const struct table *t, const char *path, struct err *e)
{
    struct bytes file;
    enum status st = file_read(&file, path, e);

    *out = (struct rows){0};
    if (st == OK)
        st = csv_rows(out, t, path, file.data, file.n, e);
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

enum status table_cut_torn(const char *path, size_t *cut, struct err *e)
{
    struct bytes file;
    enum status st = file_read(&file, path, e);

    if (st != OK)
        return st;
    const size_t whole = csv_whole(file.data, file.n);
    if (whole < file.n && truncate(path, (off_t)whole) != 0)
        st = file_fail(e, "cut", path, errno);
    if (cut)
        *cut = file.n - whole;
    free(file.data);
    return st;
}

struct row_filter {
    const struct table *table;
    drop_fn *drop;
    void *arg;
    char *out; /* as long as the file: it only shrinks */
    size_t n, dropped;
};

static enum status sift(void *arg, const void *row, const char *line, size_t n, struct err *e)
{
    struct row_filter *s = arg;
    (void)e;

    if (row && s->drop(s->arg, s->table, row)) {
        s->dropped++;
        return OK;
    }
    memcpy(s->out + s->n, line, n);
    s->n += n;
    return OK;
}

enum status table_rewrite_without(const struct table *t, const char *path, drop_fn *drop, void *arg,
                                  size_t *dropped, struct err *e)
{
    struct bytes file = {0};
    struct row_filter s = {.table = t, .drop = drop, .arg = arg};
    enum status st = table_cut_torn(path, NULL, e);

    if (st == OK)
        st = file_read(&file, path, e);
    if (st != OK)
        goto out;
    s.out = malloc(file.n + 1);
    if (!s.out) {
        st = fail(e, E_NOMEM, "no memory for %s", path);
        goto out;
    }
    if (file.n > 0) /* nothing at all: killed before the header, table_resume mends it */
        st = csv_each(t, path, file.data, file.n, sift, &s, e);
    if (st == OK && s.dropped > 0)
        st = file_replace(path, s.out, s.n, e);
out:
    if (dropped)
        *dropped = s.dropped;
    free(s.out);
    free(file.data);
    return st;
}

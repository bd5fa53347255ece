/* SPDX-License-Identifier: MIT
 *
 * Text, links and tables of the report as HTML. Whatever comes from a table is escaped here. */
#include "report.h"

#include "harness/util/units.h"

#include <string.h>

void html_text(FILE *f, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '&':
            fputs("&amp;", f);
            break;
        case '<':
            fputs("&lt;", f);
            break;
        case '>':
            fputs("&gt;", f);
            break;
        case '"':
            fputs("&quot;", f);
            break;
        case '\'':
            fputs("&#39;", f);
            break;
        default:
            fputc(*text, f);
        }
}

/* Bytes that a data: address may have as they are, in an attribute too. */
static bool is_plain(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c && strchr("-_.~,:/+=;()", c));
}

void html_download(FILE *f, const char *name, const char *text, const struct bytes *bytes)
{
    fputs("<a class=\"save\" download=\"", f);
    html_text(f, name);
    fputs("\" href=\"data:text/csv;charset=utf-8,", f);
    for (size_t i = 0; i < bytes->n; i++)
        if (is_plain(bytes->data[i]))
            fputc(bytes->data[i], f);
        else
            fprintf(f, "%%%02X", (unsigned char)bytes->data[i]);
    fputs("\">", f);
    html_text(f, text);
    fputs("</a>\n", f);
}

/* ---- values ------------------------------------------------------------------------------- */

static double number_of(const struct column *c, const char *row)
{
    if (c->type == COLUMN_I64) {
        int64_t x;
        memcpy(&x, row + c->offset, sizeof(x));
        return x == I64_EMPTY ? NAN : (double)x;
    }
    double x;
    memcpy(&x, row + c->offset, sizeof(x));
    return x;
}

void html_value(FILE *f, const struct table *t, int column, const void *row)
{
    const struct column *const c = &t->columns[column];
    char num[NUMBER_SIZE];
    const char *const text = row_field(t, column, row, num);

    if (c->type == COLUMN_TEXT || !*text) {
        html_text(f, text);
        return;
    }
    const double x = number_of(c, row);
    if (strcmp(c->unit, "ns") == 0)
        fputs(units_ns(x).s, f);
    else if (strcmp(c->unit, "bytes") == 0)
        fputs(units_bytes(x).s, f);
    else if (strcmp(c->unit, "flop/s") == 0)
        fprintf(f, "%s GFLOP/s", units_rate(x * 1e-9).s);
    else if (strcmp(c->unit, "bytes/s") == 0)
        fprintf(f, "%s GB/s", units_rate(x * 1e-9).s);
    else if (strcmp(c->unit, "1/s") == 0)
        fputs(units_rate(x).s, f);
    else if (c->type == COLUMN_REAL)
        fprintf(f, "%.4g", x);
    else
        fputs(text, f);
}

/* ---- tables of rows ----------------------------------------------------------------------- */

struct shown {
    int column[COLUMNS_MAX];
    int n, always; /* the first `always` are shown in any case */
};

static int find(const struct table *t, const char *name)
{
    for (int i = 0; i < t->n; i++)
        if (strcmp(t->columns[i].name, name) == 0)
            return i;
    CHECK(!"a column that the table does not have");
    return 0;
}

static void show(struct shown *s, int column)
{
    for (int i = 0; i < s->n; i++)
        if (s->column[i] == column)
            return;
    s->column[s->n++] = column;
}

static bool constant(const struct table *t, const struct rows *rows, int column)
{
    char num[2][NUMBER_SIZE];
    const char *const first = row_field(t, column, rows->row, num[0]);

    for (size_t i = 1; i < rows->n; i++)
        if (strcmp(first,
                   row_field(t, column, (const char *)rows->row + i * t->row_size, num[1])) != 0)
            return false;
    return true;
}

static void choose(struct shown *s, const struct table *t, const char *const *first,
                   const char *const *rest)
{
    *s = (struct shown){0};
    for (int i = 0; first[i]; i++)
        show(s, find(t, first[i]));
    s->always = s->n;
    for (int i = 0; rest && rest[i]; i++)
        show(s, find(t, rest[i]));
    for (int i = 1; !rest && i < t->n; i++) /* all but the schema */
        show(s, i);
}

/* Columns in which no row differs: said once, above the table. */
static void split_constant(struct shown *s, FILE *f, const struct table *t, const struct rows *rows)
{
    int n = s->always, said = 0;

    for (int i = s->always; i < s->n; i++) {
        char num[NUMBER_SIZE];
        if (!constant(t, rows, s->column[i])) {
            s->column[n++] = s->column[i];
            continue;
        }
        if (!*row_field(t, s->column[i], rows->row, num))
            continue;
        fprintf(f, "%s%s <b>",
                said++ ? ", " : "<p class=\"same\">In all rows: ", t->columns[s->column[i]].name);
        html_value(f, t, s->column[i], rows->row);
        fputs("</b>", f);
    }
    fputs(said ? ".</p>\n" : "", f);
    s->n = n;
}

static void print_case(FILE *f, const struct table *t, int column, const char *row)
{
    const struct column *const c = &t->columns[column];
    char num[NUMBER_SIZE];
    const char *const text = row_field(t, column, row, num);

    if (strcmp(c->name, "repro") == 0) {
        fputs("<td class=\"repro\"><button type=\"button\" class=\"copy\" data-copy=\"./bench ", f);
        html_text(f, text);
        fputs("\">copy</button> <code>./bench ", f);
        html_text(f, text);
        fputs("</code></td>", f);
        return;
    }
    if (c->type == COLUMN_TEXT) {
        fputs("<td>", f);
    } else {
        fputs("<td class=\"n\" data-v=\"", f);
        html_text(f, text);
        fputs("\">", f);
    }
    html_value(f, t, column, row);
    fputs("</td>", f);
}

void report_rows(FILE *f, const struct table *t, const struct rows *rows, const char *id,
                 const char *const *first, const char *const *rest)
{
    struct shown s;

    choose(&s, t, first, rest);
    split_constant(&s, f, t, rows);
    fprintf(f,
            "<label class=\"filter\">Filter <input type=\"search\" data-table=\"%s\" "
            "placeholder=\"words, all must match\"></label> <span class=\"count\" "
            "data-count=\"%s\">%zu rows</span>\n",
            id, id, rows->n);
    fprintf(f, "<div class=\"scroll\" tabindex=\"0\"><table class=\"rows\" id=\"%s\">\n<thead><tr>",
            id);
    for (int i = 0; i < s.n; i++) {
        const struct column *const c = &t->columns[s.column[i]];
        fputs("<th scope=\"col\" title=\"", f);
        html_text(f, c->meaning);
        fprintf(f, "\"><button type=\"button\">%s</button></th>", c->name);
    }
    fputs("</tr></thead>\n<tbody>\n", f);
    for (size_t k = 0; k < rows->n; k++) {
        const char *const row = (const char *)rows->row + k * t->row_size;
        fputs("<tr>", f);
        for (int i = 0; i < s.n; i++)
            print_case(f, t, s.column[i], row);
        fputs("</tr>\n", f);
    }
    fputs("</tbody></table></div>\n", f);
}

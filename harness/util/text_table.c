/* SPDX-License-Identifier: MIT
 *
 * Tables of text. */
#include "text_table.h"
#include "grow.h"
#include "suggest.h"
#include "terminal.h"
#include "text.h"
#include "variants/base/printable.h"

#include <csv.h>
#include <jansson.h>
#include <unistd.h>

enum status text_table_add(struct text_table *s, const char *const *text, struct err *e)
{
    const size_t columns = (size_t)s->columns;
    const enum status st = grow_array(&s->text, (size_t)s->rows, columns * sizeof(*s->text), e);

    if (st != OK)
        return st;
    char **const row = s->text + (size_t)s->rows++ * columns;
    for (int i = 0; i < s->columns; i++)
        row[i] = NULL;
    for (int i = 0; i < s->columns; i++) {
        row[i] = strdup(text[i] ? text[i] : "");
        if (!row[i])
            return fail(e, E_NOMEM, "no memory for %d rows", s->rows);
    }
    return OK;
}

enum status text_table_select(struct text_table *s, const struct names *columns, struct err *e)
{
    const char *names[TEXT_TABLE_COLUMNS + 1] = {0};

    CHECK(s->columns <= TEXT_TABLE_COLUMNS);
    for (int i = 0; i < s->columns; i++)
        names[i] = s->column[i].name;
    for (int k = 0; k < columns->n && k < TEXT_TABLE_COLUMNS; k++) {
        const int i = word_index(columns->v[k], names);
        if (i < 0)
            return unknown_word(e, "column", columns->v[k], names, NULL);
        s->at[s->shown++] = i;
    }
    return OK;
}

/* ---- CSV, JSON lines, Markdown ------------------------------------------------------------- */

static void print_json(FILE *f, const char *text, bool number)
{
    char clean[8192];
    json_t *string;

    if (!*text || number) {
        fputs(*text ? text : "null", f);
        return;
    }
    string = json_string(text);
    if (!string) { /* not UTF-8 */
        text_put(clean, sizeof(clean), text);
        string = json_string(clean);
    }
    NEED(string);
    json_dumpf(string, f, JSON_ENCODE_ANY);
    json_decref(string);
}

/* A line with one empty field would be a blank line. */
static void print_csv(FILE *f, const char *text, bool alone)
{
    if (strpbrk(text, ",\"\r\n") || (alone && !*text))
        csv_fwrite(f, text, strlen(text));
    else
        fputs(text, f);
}

static void print_md(FILE *f, const char *text)
{
    while (*text) {
        const size_t n = printable_length(text);
        char escape[PRINTABLE_ESCAPE] = " ";
        if (n == 0 && *text != '\n' && *text != '\r')
            printable_escape(escape, *text);
        if (*text == '|')
            fputc('\\', f);
        fwrite(n ? text : escape, 1, n ? n : strlen(escape), f);
        text += n ? n : 1;
    }
}

void text_row_print(FILE *f, enum format format, const struct text_table_column *column,
                    const char *const *text, int n)
{
    if (format == FORMAT_JSONL && !text)
        return;
    for (int k = 0; k < n; k++) {
        const char *const field = text ? text[k] : column[k].name;
        if (format == FORMAT_JSONL) {
            fprintf(f, "%s\"%s\":", k ? "," : "{", column[k].name);
            print_json(f, field, column[k].number);
        } else if (format == FORMAT_MD) {
            fputs("| ", f);
            print_md(f, field);
            fputc(' ', f);
        } else {
            fputs(k ? "," : "", f);
            print_csv(f, field, n == 1);
        }
    }
    fputs(format == FORMAT_JSONL ? "}\n" : format == FORMAT_MD ? "|\n" : "\n", f);
    if (format == FORMAT_MD && !text) {
        for (int k = 0; k < n; k++)
            fputs(column[k].number ? "|---:" : "|---", f);
        fputs("|\n", f);
    }
}

/* ---- a whole table -------------------------------------------------------------------------- */

/* Lines do not end in blanks. */
static void print_aligned(FILE *f, const struct text_table_column *column, const char *const *text,
                          int n, const int *width)
{
    int pending = 0; /* blanks to write before the next text */

    for (int k = 0; k < n; k++) {
        const char *const field = text ? text[k] : column[k].name;
        const int pad = width[k] - terminal_columns(field);
        pending += (k ? 2 : 0) + (column[k].number ? pad : 0);
        if (*field) {
            fprintf(f, "%*s", pending, "");
            text_print(f, field);
            pending = 0;
        }
        pending += column[k].number ? 0 : pad;
    }
    fputc('\n', f);
}

void text_table_print(FILE *f, const struct text_table *s, enum format format)
{
    struct text_table_column column[TEXT_TABLE_COLUMNS];
    int at[TEXT_TABLE_COLUMNS], width[TEXT_TABLE_COLUMNS], n = 0;

    CHECK(s->columns <= TEXT_TABLE_COLUMNS);
    if (format == FORMAT_AUTO)
        format = isatty(fileno(f)) ? FORMAT_TABLE : FORMAT_CSV;
    for (int k = 0; k < (s->shown ? s->shown : s->columns); k++) {
        const int c = s->shown ? s->at[k] : k;
        if (format == FORMAT_TABLE && !s->shown && s->column[c].wide)
            continue;
        column[n] = s->column[c];
        at[n++] = c;
    }
    for (int k = 0; k < n && format == FORMAT_TABLE; k++) {
        width[k] = terminal_columns(column[k].name);
        for (int row = 0; row < s->rows; row++)
            width[k] = max_int(width[k], terminal_columns(s->text[row * s->columns + at[k]]));
    }
    for (int row = -1; row < s->rows; row++) {
        const char *text[TEXT_TABLE_COLUMNS];
        for (int k = 0; k < n && row >= 0; k++)
            text[k] = s->text[row * s->columns + at[k]];
        if (format == FORMAT_TABLE)
            print_aligned(f, column, row < 0 ? NULL : text, n, width);
        else
            text_row_print(f, format, column, row < 0 ? NULL : text, n);
    }
}

void text_table_free(struct text_table *s)
{
    for (size_t i = 0; i < (size_t)s->rows * (size_t)s->columns; i++)
        free(s->text[i]);
    free(s->text);
    s->text = NULL;
    s->rows = 0;
}

/* SPDX-License-Identifier: MIT
 *
 * Sheets. */
#include "text_table.h"
#include "grow.h"
#include "suggest.h"
#include "terminal.h"

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

static int shown_columns(const struct text_table *s) { return s->shown ? s->shown : s->columns; }

/* The k-th printed column; wide ones are left out of a table unless they were asked for. */
static int column_at(const struct text_table *s, int k, enum format format)
{
    if (s->shown)
        return s->at[k];
    return format == FORMAT_TABLE && s->column[k].wide ? -1 : k;
}

static const char *text_at(const struct text_table *s, int row, int column)
{
    return row < 0 ? s->column[column].name : s->text[(size_t)row * (size_t)s->columns + column];
}

static void print_json(FILE *f, const struct text_table *s, int row, int column, bool first)
{
    const char *const text = text_at(s, row, column);
    json_t *const string = json_string(text);

    fprintf(f, "%s\"%s\":", first ? "{" : ",", s->column[column].name);
    if (!*text || !string)
        fputs("null", f);
    else if (s->column[column].number)
        fputs(text, f);
    else
        json_dumpf(string, f, JSON_ENCODE_ANY);
    json_decref(string);
}

static void print_row(FILE *f, const struct text_table *s, int row, enum format format,
                      const int *width)
{
    bool first = true;
    int pending = 0; /* blanks owed, so that no line ends with them */

    for (int k = 0; k < shown_columns(s); k++) {
        const int c = column_at(s, k, format);
        if (c < 0)
            continue;
        const char *const text = text_at(s, row, c);
        const int pad = width[c] - terminal_columns(text);
        if (format == FORMAT_JSONL) {
            print_json(f, s, row, c, first);
        } else if (format == FORMAT_MD) {
            fprintf(f, "| %s ", text);
        } else if (format == FORMAT_CSV) {
            fputs(first ? "" : ",", f);
            if (strpbrk(text, ",\"\r\n"))
                csv_fwrite(f, text, strlen(text));
            else
                fputs(text, f);
        } else {
            const int before = pending + (first ? 0 : 2) + (s->column[c].number ? pad : 0);
            if (*text)
                fprintf(f, "%*s%s", before, "", text);
            pending = *text ? s->column[c].number ? 0 : pad : before + pad * !s->column[c].number;
        }
        first = false;
    }
    fputs(format == FORMAT_JSONL ? "}\n" : format == FORMAT_MD ? "|\n" : "\n", f);
}

void text_table_print(FILE *f, const struct text_table *s, enum format format)
{
    int width[TEXT_TABLE_COLUMNS] = {0};

    CHECK(s->columns <= TEXT_TABLE_COLUMNS);
    if (format == FORMAT_AUTO)
        format = isatty(fileno(f)) ? FORMAT_TABLE : FORMAT_CSV;
    for (int row = -1; row < s->rows; row++)
        for (int c = 0; c < s->columns; c++)
            width[c] = max_int(width[c], terminal_columns(text_at(s, row, c)));
    if (format != FORMAT_JSONL)
        print_row(f, s, -1, format, width);
    if (format == FORMAT_MD) {
        for (int k = 0; k < shown_columns(s); k++)
            fputs(s->column[column_at(s, k, format)].number ? "|---:" : "|---", f);
        fputs("|\n", f);
    }
    for (int row = 0; row < s->rows; row++)
        print_row(f, s, row, format, width);
}

void text_table_free(struct text_table *s)
{
    for (size_t i = 0; i < (size_t)s->rows * (size_t)s->columns; i++)
        free(s->text[i]);
    free(s->text);
    s->text = NULL;
    s->rows = 0;
}

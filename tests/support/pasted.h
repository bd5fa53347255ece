/* SPDX-License-Identifier: MIT
 *
 * A table of the screen, and the same as Markdown and as LaTeX: each row of one is a row of the others,
 * and a LaTeX document can take the last as it is. */
#pragma once

#include "variants/base/base.h"

#include <criterion/criterion.h>

enum { PASTED_LINE = 4096 };

/* The next line of *text; false after the last. */
static inline bool next_line(const char **text, char line[PASTED_LINE])
{
    const size_t n = strcspn(*text, "\n");

    if (!**text)
        return false;
    cr_assert_lt(n, PASTED_LINE, "%s", *text);
    memcpy(line, *text, n);
    line[n] = '\0';
    *text += n + ((*text)[n] == '\n');
    return true;
}

/* In place: one blank between words, none at the ends. */
static inline void squeeze(char *line)
{
    char *to = line;

    for (const char *c = line; *c; c++)
        if (*c != ' ' || (to > line && to[-1] != ' '))
            *to++ = *c;
    while (to > line && to[-1] == ' ')
        to--;
    *to = '\0';
}

static inline void replace_all(char *line, const char *old, const char *new)
{
    for (char *at = line; (at = strstr(at, old)); at += strlen(new)) {
        memmove(at + strlen(new), at + strlen(old), strlen(at + strlen(old)) + 1);
        memcpy(at, new, strlen(new));
    }
}

/* A Markdown row as the screen's line; false: it is none. */
static inline bool md_row(char line[PASTED_LINE])
{
    const size_t n = strlen(line);

    if (n < 4 || strncmp(line, "| ", 2) != 0)
        return false;
    cr_expect_str_eq(line + n - 2, " |");
    line[n - 2] = '\0';
    line[0] = ' ';
    replace_all(line, " | ", "   ");
    replace_all(line, "\\|", "|");
    squeeze(line);
    return true;
}

/* A LaTeX row of so many columns; false: it is none. */
static inline bool tex_row(char line[PASTED_LINE], int columns)
{
    static const char *const word[][2] = {{"\\%", "%"},
                                          {"\\_", "_"},
                                          {"\\#", "#"},
                                          {"\\&", "&"},
                                          {"$\\pm$", "±"},
                                          {"$\\cdot$", "·"},
                                          {"\\textasciitilde{}", "~"},
                                          {"\\textbar{}", "|"},
                                          {"{[}", "["},
                                          {"$-$", "-"},
                                          {"\\textless{}", "<"},
                                          {"\\textgreater{}", ">"}};
    char *const end = strstr(line, " \\\\");
    int n = 1;

    if (!end)
        return false;
    cr_expect_str_eq(end, " \\\\", "what follows the end of a row: %s", line);
    *end = '\0';
    for (const char *c = line; (c = strstr(c, " & ")); c += 2)
        n++;
    cr_expect_eq(n, columns, "%s", line);
    replace_all(line, " & ", "   ");
    char bare[PASTED_LINE];
    strcpy(bare, line);
    for (size_t i = 0; i < ARRAY_LEN(word); i++) {
        replace_all(line, word[i][0], word[i][1]);
        replace_all(bare, word[i][0], "");
    }
    cr_expect_eq(strcspn(bare, "\\%_&#$^~{}["), strlen(bare), "LaTeX would take it: %s", bare);
    squeeze(line);
    return true;
}

/* Is the text's structure that of tables and comments alone? The number of its tables. */
static inline int tex_tables(const char *text)
{
    static const char *const order[] = {"\\toprule", "\\midrule", "\\bottomrule", "\\end{tabular}"};
    char line[PASTED_LINE], row[PASTED_LINE];
    int columns = 0, n = 0;
    size_t next = ARRAY_LEN(order);

    while (next_line(&text, line)) {
        static const char begin[] = "\\begin{tabular}{";
        strcpy(row, line);
        if (strncmp(line, begin, strlen(begin)) == 0) {
            cr_expect_eq(next, ARRAY_LEN(order), "a table in a table");
            columns = (int)strspn(line + strlen(begin), "lr");
            cr_expect_str_eq(line + strlen(begin) + columns, "}");
            next = 0;
            n++;
        } else if (next < ARRAY_LEN(order) && strcmp(line, order[next]) == 0) {
            next++;
        } else if (next == ARRAY_LEN(order)) {
            cr_expect(*line == '%' || !*line, "outside of tables: %s", line);
        } else {
            cr_expect(tex_row(row, columns) && (next == 1 || next == 2), "%s", line);
        }
    }
    cr_expect_eq(next, ARRAY_LEN(order), "the last table has no end");
    return n;
}

static inline bool has_line(const char *text, const char *wanted)
{
    char line[PASTED_LINE];
    bool has = false;

    while (!has && next_line(&text, line)) {
        squeeze(line);
        has = strcmp(line, wanted) == 0;
    }
    return has;
}

/* The number of rows, heading included. */
static inline int expect_pasted(const char *table, const char *md, const char *tex)
{
    char line[PASTED_LINE], other[PASTED_LINE];
    int rows = 0;

    cr_expect_eq(tex_tables(tex), 1, "%s", tex);
    const char *const letters = strstr(tex, "{tabular}{");
    const int columns = letters ? (int)strspn(letters + 10, "lr") : 0;
    for (const char *at = md; next_line(&at, line);) {
        if (!md_row(line))
            continue;
        bool found = false;
        cr_expect(has_line(table, line), "not on the screen: %s\n%s", line, table);
        while (!found && next_line(&tex, other))
            found = tex_row(other, columns);
        cr_expect(found && strcmp(line, other) == 0, "Markdown: %s\nLaTeX: %s", line, other);
        rows++;
    }
    while (next_line(&tex, other))
        cr_expect_not(tex_row(other, columns), "in LaTeX alone: %s", other);
    return rows;
}

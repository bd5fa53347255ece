/* SPDX-License-Identifier: MIT
 *
 * Tables of text. */
#include "text_table.h"
#include "fileio.h"
#include "variants/base/printable.h"

#include <csv.h>
#include <ctype.h>
#include <jansson.h>

bool format_is_table(enum format format, FILE *f)
{
    return format == FORMAT_TABLE || (format == FORMAT_AUTO && isatty(fileno(f)));
}

void text_table_cell(struct text_table *s, const char *fmt, ...)
{
    const size_t columns = (size_t)s->columns;
    va_list ap;

    if (s->cells == 0) {
        NEED(grow_array(&s->text, (size_t)s->rows, columns * sizeof(*s->text), NULL) == OK);
        memset(s->text + (size_t)s->rows++ * columns, 0, columns * sizeof(*s->text));
    }
    va_start(ap, fmt);
    NEED(vasprintf(&s->text[(size_t)(s->rows - 1) * columns + (size_t)s->cells], fmt, ap) >= 0);
    va_end(ap);
    s->cells = (s->cells + 1) % s->columns;
}

void text_table_add(struct text_table *s, const char *const *text)
{
    for (int i = 0; i < s->columns; i++)
        text_table_cell(s, "%s", text[i] ? text[i] : "");
}

const char *text_number(char text[NUMBER_SIZE], const char *format, double x)
{
    text[0] = '\0';
    if (isfinite(x))
        snprintf(text, NUMBER_SIZE, format, x);
    return text;
}

void text_table_number(struct text_table *s, const char *format, double x)
{
    char text[NUMBER_SIZE];

    text_table_cell(s, "%s", text_number(text, format, x));
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

/* ---- CSV, JSON lines, Markdown, LaTeX ------------------------------------------------------ */

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

static const struct text_escape md_escapes[] = {
    {"|", "\\|"}, {"\n", " "}, {"\r", " "}, {NULL, NULL}};
/* "[" would be an option of the line end before it. */
static const struct text_escape tex_escapes[] = {{"\\", "\\textbackslash{}"},
                                                 {"&", "\\&"},
                                                 {"%", "\\%"},
                                                 {"$", "\\$"},
                                                 {"#", "\\#"},
                                                 {"_", "\\_"},
                                                 {"{", "\\{"},
                                                 {"}", "\\}"},
                                                 {"~", "\\textasciitilde{}"},
                                                 {"^", "\\textasciicircum{}"},
                                                 {"<", "\\textless{}"},
                                                 {">", "\\textgreater{}"},
                                                 {"|", "\\textbar{}"},
                                                 {"[", "{[}"},
                                                 {"±", "$\\pm$"},
                                                 {"·", "$\\cdot$"},
                                                 {"\n", " "},
                                                 {"\r", " "},
                                                 {NULL, NULL}};

/* Bytes that are no text become escapes, but not in LaTeX, which would read them as commands; there a
 * number has a minus, not a hyphen. */
static void print_escaped(FILE *f, const char *text, const struct text_escape *escapes)
{
    const bool tex = escapes == tex_escapes;
    const char *const begin = text;

    while (*text) {
        const bool minus = tex && *text == '-' && isdigit((unsigned char)text[1]) &&
                           (text == begin || strchr(" [(", text[-1]));
        const struct text_escape *const e = text_escape_at(escapes, text);
        char other[PRINTABLE_ESCAPE] = "?";
        size_t n = printable_length(text);
        if (minus) {
            fputs("$-$", f);
        } else if (e) {
            n = strlen(e->is);
            fputs(e->as, f);
        } else if (n > 0) {
            fwrite(text, 1, n, f);
        } else {
            n = 1;
            if (!tex)
                printable_escape(other, *text);
            fputs(other, f);
        }
        text += n;
    }
}

static void begin_tex(FILE *f, const struct text_table_column *column, int n)
{
    fputs("\\begin{tabular}{", f);
    for (int k = 0; k < n; k++)
        fputc(column[k].number ? 'r' : 'l', f);
    fputs("}\n\\toprule\n", f);
}

/* What separates the fields, and ends the row, by format. */
static const struct {
    const char *before, *between, *after;
} row_marks[] = {[FORMAT_CSV] = {"", ",", "\n"},
                 [FORMAT_JSONL] = {"{", ",", "}\n"},
                 [FORMAT_JSON] = {"{", ",", "}"},
                 [FORMAT_MD] = {"| ", " | ", " |\n"},
                 [FORMAT_TEX] = {"", " & ", " \\\\\n"}};

static void print_field(FILE *f, enum format format, const struct text_table_column *column,
                        const char *text, bool alone)
{
    if (format == FORMAT_JSON || format == FORMAT_JSONL) {
        fprintf(f, "\"%s\":", column->name);
        print_json(f, text, column->number);
    } else if (format_is_pasted(format)) {
        print_escaped(f, text, format == FORMAT_TEX ? tex_escapes : md_escapes);
    } else {
        print_csv(f, text, alone);
    }
}

void text_row_print(FILE *f, enum format format, const struct text_table_column *column,
                    const char *const *text, int n)
{
    if (!text && (format == FORMAT_JSONL || format == FORMAT_JSON))
        return;
    if (!text && format == FORMAT_TEX)
        begin_tex(f, column, n);
    fputs(row_marks[format].before, f);
    for (int k = 0; k < n; k++) {
        fputs(k ? row_marks[format].between : "", f);
        print_field(f, format, &column[k], text ? text[k] : column[k].name, n == 1);
    }
    fputs(row_marks[format].after, f);
    if (!text && format == FORMAT_MD) {
        for (int k = 0; k < n; k++)
            fputs(column[k].number ? "|---:" : "|---", f);
        fputs("|\n", f);
    }
    if (!text && format == FORMAT_TEX)
        fputs("\\midrule\n", f);
}

void text_rows_end(FILE *f, enum format format)
{
    if (format == FORMAT_TEX)
        fputs("\\bottomrule\n\\end{tabular}\n", f);
}

void text_beside(FILE *f, enum format format, bool above, const char *fmt, ...)
{
    va_list ap;
    char *text;

    fputs(format == FORMAT_MD && !above ? "\n" : "", f);
    va_start(ap, fmt);
    if (format != FORMAT_TEX) {
        text_vline(f, fmt, ap);
    } else {
        NEED(vasprintf(&text, fmt, ap) >= 0);
        for (char *line = text, *end; line; line = end) {
            end = strchr(line, '\n');
            if (end)
                *end++ = '\0';
            fputs("% ", f);
            text_print(f, line);
            fputc('\n', f);
        }
        free(text);
    }
    va_end(ap);
    fputs(format == FORMAT_MD && above ? "\n" : "", f);
}

/* ---- a whole table -------------------------------------------------------------------------- */

static void tell_left_out(const struct text_layout *l, int width)
{
    char names[TEXT_TABLE_COLUMNS * 32] = "";

    for (int i = 0; l->left_out[i]; i++)
        text_join(names, sizeof(names), ", ", l->left_out[i]);
    if (*names)
        text_line(stderr,
                  "note: %d columns are too narrow for %s  -> widen the terminal; --format csv has "
                  "them all",
                  width, names);
}

/* Columns of the terminal that column c takes. */
static int widest(const struct text_table *s, int c)
{
    int most = terminal_columns(s->column[c].name);

    for (int row = 0; row < s->rows; row++)
        most = max_int(most, terminal_columns(s->text[row * s->columns + c]));
    return most;
}

static void print_aligned(FILE *f, const struct text_table *s,
                          const struct text_table_column *column, const int *at, int n)
{
    const int terminal = terminal_width(fileno(f));
    const char *text[TEXT_TABLE_COLUMNS];
    int natural[TEXT_TABLE_COLUMNS];
    struct text_layout l;

    for (int k = 0; k < n; k++)
        natural[k] = widest(s, at[k]);
    text_layout_fit(&l, column, natural, n, terminal);
    if (!s->quiet)
        tell_left_out(&l, terminal);
    for (int row = -1; row < s->rows; row++) {
        for (int k = 0; k < n; k++)
            text[k] = row < 0 ? column[k].name : s->text[row * s->columns + at[k]];
        text_layout_print(f, &l, column, text);
    }
}

static void print_rows(FILE *f, const struct text_table *s, enum format format,
                       const struct text_table_column *column, const int *at, int n)
{
    if (format == FORMAT_JSON)
        fputc('[', f);
    for (int row = -1; row < s->rows; row++) {
        const char *text[TEXT_TABLE_COLUMNS];
        for (int k = 0; k < n && row >= 0; k++)
            text[k] = s->text[row * s->columns + at[k]];
        if (format == FORMAT_JSON && row >= 0)
            fputs(row > 0 ? ",\n" : "\n", f);
        text_row_print(f, format, column, row < 0 ? NULL : text, n);
    }
    text_rows_end(f, format);
    if (format == FORMAT_JSON)
        fputs("\n]\n", f);
}

/* Does no row have a text in column c? */
static bool is_empty(const struct text_table *s, int c)
{
    for (int row = 0; row < s->rows; row++)
        if (*s->text[row * s->columns + c])
            return false;
    return s->rows > 0;
}

void text_table_print(FILE *f, const struct text_table *s, enum format format)
{
    struct text_table_column column[TEXT_TABLE_COLUMNS];
    int at[TEXT_TABLE_COLUMNS], n = 0;

    CHECK(s->columns <= TEXT_TABLE_COLUMNS && s->cells == 0);
    if (format == FORMAT_AUTO)
        format = format_is_table(format, f) ? FORMAT_TABLE : FORMAT_CSV;
    const bool people = format == FORMAT_TABLE || format_is_pasted(format);
    for (int k = 0; k < (s->shown ? s->shown : s->columns); k++) {
        const int c = s->shown ? s->at[k] : k;
        if (people && !s->shown && (s->column[c].wide || is_empty(s, c)))
            continue;
        column[n] = s->column[c];
        if (s->shown)
            column[n].spare = 0;
        at[n++] = c;
    }
    if (format == FORMAT_TABLE)
        print_aligned(f, s, column, at, n);
    else
        print_rows(f, s, format, column, at, n);
}

enum status text_table_write(const struct text_table *s, const char *path, struct err *e)
{
    struct bytes text;
    FILE *const f = bytes_open(&text, e);

    if (!f)
        return E_NOMEM;
    text_table_print(f, s, FORMAT_CSV);
    TRY(bytes_close(f, &text, e));
    const enum status st = file_replace(path, text.data, text.n, e);
    free(text.data);
    return st;
}

int text_table_width(const struct text_table *s)
{
    int width = -2;

    for (int c = 0; c < s->columns; c++)
        width += 2 + widest(s, c);
    return width;
}

void text_table_free(struct text_table *s)
{
    for (size_t i = 0; i < (size_t)s->rows * (size_t)s->columns; i++)
        free(s->text[i]);
    free(s->text);
    s->text = NULL;
    s->rows = 0;
}

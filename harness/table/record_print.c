/* SPDX-License-Identifier: MIT
 *
 * Rows for people and programs: CSV, JSON lines and Markdown of any table and any choice of its
 * columns, and the tables of results/README.md. */
#include "harness/util/suggest.h"
#include "record.h"

#include <csv.h>
#include <jansson.h>
#include <string.h>

/* The known names, as many as the message has room for. */
static enum status unknown_column(struct err *e, const struct table *t, const char *name)
{
    const char *words[COLUMNS_MAX + 1] = {NULL};
    char known[360] = "", meant[80] = "";
    size_t n = 0;
    int i = 0;

    for (; i < t->n && n + strlen(t->columns[i].name) + 3 < sizeof(known); i++)
        n += (size_t)snprintf(known + n, sizeof(known) - n, "%s, ", t->columns[i].name);
    for (int k = 0; k < t->n; k++)
        words[k] = t->columns[k].name;
    const char *near = nearest(name, words);
    if (near)
        snprintf(meant, sizeof(meant), "did you mean %s?  ", near);
    return fail(e, E_USAGE,
                "--columns: %s.csv has no column \"%.64s\"  -> %s(%s%sbench list columns)", t->name,
                name, meant, known, i < t->n ? "...; see: " : "see: ");
}

enum status columns_select(struct selection *s, const struct table *t, const char *const *names,
                           int n, struct err *e)
{
    s->n = 0;
    for (int i = 0; n == 0 && i < t->n; i++)
        s->at[s->n++] = i;
    for (int k = 0; k < n; k++) {
        const int i = find_column(t, names[k]);
        if (i < 0)
            return unknown_column(e, t, names[k]);
        if (s->n == COLUMNS_MAX)
            return fail(e, E_USAGE, "--columns: more than %d names  -> name each column once",
                        COLUMNS_MAX);
        s->at[s->n++] = i;
    }
    return OK;
}

void print_csv_header(FILE *f, const struct table *t, const struct selection *s)
{
    for (int k = 0; k < s->n; k++)
        fprintf(f, "%s%s", k ? "," : "", t->columns[s->at[k]].name);
    fputc('\n', f);
}

void print_csv_row(FILE *f, const struct table *t, const struct selection *s, const void *row)
{
    char num[NUMBER_SIZE];

    for (int k = 0; k < s->n; k++) {
        const char *text = row_field(t, s->at[k], row, num);
        /* An empty field alone on its line would be a blank line. */
        const bool quote = strpbrk(text, ",\"\r\n") != NULL || (s->n == 1 && text[0] == '\0');
        if (k)
            fputc(',', f);
        if (quote)
            csv_fwrite(f, text, strlen(text));
        else
            fputs(text, f);
    }
    fputc('\n', f);
}

static void print_json_text(FILE *f, const char *text)
{
    json_t *string = json_string(text);
    if (!string) { /* not UTF-8: a row that text_put did not fill */
        char clean[PAGE_TEXT_SIZE];
        text_put(clean, sizeof(clean), text);
        string = json_string(clean);
    }
    CHECK(string);
    json_dumpf(string, f, JSON_ENCODE_ANY);
    json_decref(string);
}

void print_jsonl_row(FILE *f, const struct table *t, const struct selection *s, const void *row)
{
    char num[NUMBER_SIZE];

    for (int k = 0; k < s->n; k++) {
        const struct column *c = &t->columns[s->at[k]];
        const char *text = row_field(t, s->at[k], row, num);
        fprintf(f, "%s\"%s\":", k ? "," : "{", c->name);
        if (text[0] == '\0')
            fputs("null", f);
        else if (c->type == COLUMN_TEXT)
            print_json_text(f, text);
        else
            fputs(text, f);
    }
    fputs("}\n", f);
}

static void print_md_text(FILE *f, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            fputc('\\', f);
        fputc(*text == '\n' || *text == '\r' ? ' ' : *text, f);
    }
}

void print_md_header(FILE *f, const struct table *t, const struct selection *s)
{
    for (int k = 0; k < s->n; k++)
        fprintf(f, "| %s ", t->columns[s->at[k]].name);
    fputs("|\n", f);
    for (int k = 0; k < s->n; k++)
        fputs(t->columns[s->at[k]].type == COLUMN_TEXT ? "|---" : "|---:", f);
    fputs("|\n", f);
}

void print_md_row(FILE *f, const struct table *t, const struct selection *s, const void *row)
{
    char num[NUMBER_SIZE];

    for (int k = 0; k < s->n; k++) {
        fputs("| ", f);
        print_md_text(f, row_field(t, s->at[k], row, num));
        fputc(' ', f);
    }
    fputs("|\n", f);
}

static void print_columns(FILE *f, const struct table *t, int first)
{
    static const char *const type[] = {
        [COLUMN_TEXT] = "text", [COLUMN_I64] = "integer", [COLUMN_REAL] = "real"};

    fputs("| column | type | unit | meaning |\n|---|---|---|---|\n", f);
    for (int i = first; i < t->n; i++) {
        const struct column *c = &t->columns[i];
        fprintf(f, "| `%s` | %s | %s | ", c->name, type[c->type], c->unit);
        print_md_text(f, c->meaning);
        fputs(" |\n", f);
    }
}

void columns_markdown(FILE *f)
{
    static const char intro[] =
        "# Results\n"
        "\n"
        "<!-- Generated from harness/table/columns.h: bench list columns --format md -->\n"
        "\n"
        "A run makes one folder, `<UTC>-<commit>[-n]/`, and the link `latest` points to the last\n"
        "one. In it: `latency.csv`, `memory.csv`, `perplexity.csv`, `env.csv`, the raw samples in\n"
        "`samples.csv.zst` (or `samples.csv`), and `run.json` with the options of the run.\n"
        "\n"
        "CSV by RFC 4180, UTF-8, LF, a point in numbers, base units. An empty field was not\n"
        "measured; it is never zero. The first column names table and version: within a major\n"
        "version columns are only added, at the end of their list below. Every row is complete on\n"
        "its own, and its `repro` makes it again. Tables are only appended to: where an "
        "interrupted\n"
        "run went on, a case may have several rows, of which the last counts.\n";
    fputs(intro, f);
    fputs("\n## Key columns\n\nFirst in `latency.csv`, `memory.csv` and `perplexity.csv`.\n\n", f);
    struct table key = tables[TABLE_LATENCY];
    key.n = KEY_COUNT;
    print_columns(f, &key, 0);
    for (int i = 0; i < TABLE_COUNT; i++) {
        const bool keyed = i <= TABLE_PERPLEXITY;
        fprintf(f, "\n## %s\n\nSchema `%s`.%s\n\n", tables[i].file, tables[i].schema,
                keyed ? " The key columns, then:" : "");
        print_columns(f, &tables[i], keyed ? KEY_COUNT : 0);
    }
}

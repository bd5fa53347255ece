/* SPDX-License-Identifier: MIT
 *
 * Rows for people and programs: CSV, JSON lines and Markdown of any table and any selection of its
 * columns, and the tables of results/README.md. */
#include "record.h"

static enum status unknown_column(struct err *e, const struct table *t, const char *name)
{
    const char *words[COLUMNS_MAX + 1] = {NULL};

    for (int k = 0; k < t->n; k++)
        words[k] = t->columns[k].name;
    const char *near = nearest(name, words);
    /* Or one that it begins, such as median_ns. */
    for (int k = 0; k < t->n && !near && *name; k++)
        if (strncmp(name, words[k], strlen(name)) == 0)
            near = words[k];
    if (near)
        return fail(e, E_USAGE,
                    "--columns: %s.csv has no column \"%.64s\"  -> did you mean %s?  (see: bench "
                    "list columns)",
                    t->name, name, near);
    return fail(e, E_USAGE, "--columns: %s.csv has no column \"%.64s\"  -> see: bench list columns",
                t->name, name);
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

/* Returns their number. */
static int lay_out(struct text_table_column *column, const struct table *t,
                   const struct selection *s)
{
    const int n = s ? s->n : t->n;

    for (int k = 0; k < n; k++) {
        const struct column *c = &t->columns[s ? s->at[k] : k];
        column[k] = (struct text_table_column){c->name, .number = c->type != COLUMN_TEXT};
    }
    return n;
}

void row_print_names(FILE *f, enum format format, const struct table *t, const struct selection *s)
{
    struct text_table_column column[COLUMNS_MAX];

    const int n = lay_out(column, t, s);
    text_row_print(f, format, column, NULL, n);
}

void row_print(FILE *f, enum format format, const struct table *t, const struct selection *s,
               const void *row)
{
    struct text_table_column column[COLUMNS_MAX];
    const char *text[COLUMNS_MAX];
    char num[COLUMNS_MAX][NUMBER_SIZE];

    const int n = lay_out(column, t, s);
    for (int k = 0; k < n; k++)
        text[k] = row_field(t, s ? s->at[k] : k, row, num[k]);
    text_row_print(f, format, column, text, n);
}

static void print_columns(FILE *f, const struct table *t, int first)
{
    static const char *const type[] = {
        [COLUMN_TEXT] = "text", [COLUMN_I64] = "integer", [COLUMN_REAL] = "real"};

    static const struct text_table_column heading[] = {
        {.name = "column"}, {.name = "type"}, {.name = "unit"}, {.name = "meaning"}};

    text_row_print(f, FORMAT_MD, heading, NULL, ARRAY_LEN(heading));
    for (int i = first; i < t->n; i++) {
        const struct column *c = &t->columns[i];
        char name[TEXT_SIZE];
        snprintf(name, sizeof(name), "`%s`", c->name);
        const char *const text[] = {name, type[c->type], c->unit, c->meaning};
        text_row_print(f, FORMAT_MD, heading, text, ARRAY_LEN(heading));
    }
}

static const char intro[] =
    "# Results\n"
    "\n"
    "<!-- Generated from harness/table/columns.h: bench list columns --format md -->\n"
    "\n"
    "Each run writes a folder of its own, `<UTC>-<commit>[-n]/`; the link `latest` points to\n"
    "the last one. It holds `latency.csv`, `memory.csv`, `perplexity.csv`, `env.csv`, every\n"
    "timed block in `samples.csv.zst` (or `samples.csv`), and the options in `run.json`. That of\n"
    "a study has `study.csv` too, the file that describes it (`study.txt`), and its models in\n"
    "`jobs/`.\n"
    "\n"
    "* One row is one case, complete on its own: `repro` holds the options that measure it\n"
    "  again, and `bench rerun CASE_ID` does so.\n"
    "* CSV as in RFC 4180, UTF-8, LF, a point in numbers, base units. An empty field was not\n"
    "  measured or does not apply; it is never zero.\n"
    "* The first column names the table and its version. Within a major version columns are\n"
    "  only added: read them by name.\n"
    "* Read text as text: some hashes look like numbers (the `case_id` 1605105483e35298), and a\n"
    "  reader that guesses types changes them. In Python with pandas,\n"
    "  `read_csv(F, dtype={\"case_id\": str, \"host_id\": str})`, or all columns that have type\n"
    "  text below; `contrib/python` does so.\n"
    "* Tables are only appended to. `--resume` measures again what was `interrupted`, `failed`\n"
    "  or ran into its `timeout`; rows that are `ok`, `wrong` or `skipped` stay. A case may then\n"
    "  have several rows; the last one counts.\n";

void columns_markdown(FILE *f)
{
    fputs(intro, f);
    fputs("\n## Key columns\n\nThe first columns of `latency.csv`, `memory.csv` and "
          "`perplexity.csv`.\n\n",
          f);
    struct table key = tables[TABLE_LATENCY];
    key.n = KEY_COUNT;
    print_columns(f, &key, 0);
    for (int i = 0; i < TABLE_COUNT; i++) {
        const bool keyed = i <= TABLE_PERPLEXITY;
        fprintf(f, "\n## %s\n\nSchema `%s`.%s\n\n", tables[i].file, tables[i].schema,
                keyed ? " After the key columns:" : "");
        print_columns(f, &tables[i], keyed ? KEY_COUNT : 0);
    }
}

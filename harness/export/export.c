/* SPDX-License-Identifier: MIT
 *
 * Gathers the facts of a run, and lists the formats. */
#include "export.h"

#include "harness/table/keys.h"

enum { CASE_ID_LENGTH = 16 };

/* ---- measures ----------------------------------------------------------------------------- */

/* Is the name this label, with or without a case_id? */
static bool same_label(const char *name, const char *label)
{
    const size_t n = strlen(label);

    return strncmp(name, label, n) == 0 &&
           (!name[n] || (name[n] == ' ' && strlen(name + n) == 1 + CASE_ID_LENGTH));
}

/* The label, and the case_id too if another row has the same label. */
static void name_rows(struct measures *m, const struct run *r)
{
    const struct latency_row *const row = r->latency.row;
    char label[LINE_SIZE];

    m->n_names = (int)r->latency.n;
    m->name = need_room(r->latency.n + 1, sizeof(*m->name));
    for (int i = 0; i < m->n_names; i++) {
        row_label(&row[i], NULL, label, sizeof(label));
        m->name[i] = need_text("%s", label);
    }
    for (int i = 0; i < m->n_names; i++) {
        bool alone = true;
        row_label(&row[i], NULL, label, sizeof(label));
        for (int k = 0; k < m->n_names && alone; k++)
            alone = k == i || !same_label(m->name[k], label);
        if (alone)
            continue;
        free(m->name[i]);
        m->name[i] = need_text("%s %s", label, row[i].case_id);
    }
}

static void add(struct measures *m, const struct measure *one)
{
    if (isfinite(one->value))
        m->v[m->n++] = *one;
}

static bool is_ok(const char *status) { return strcmp(status, row_status_name[ROW_OK]) == 0; }

/* The names of all rows and the measures of those that are ok. Free in any case. */
static void measures_make(struct measures *m, const struct run *r)
{
    const struct latency_row *const row = r->latency.row;
    const struct perplexity_row *const ppl = r->perplexity.row;

    *m = (struct measures){0};
    m->v = need_room(2 * r->latency.n + r->perplexity.n + 1, sizeof(*m->v));
    name_rows(m, r);
    for (size_t i = 0; i < r->latency.n; i++) {
        if (!is_ok(row[i].status))
            continue;
        add(m, &(struct measure){m->name[i], row[i].case_id, "time", "ns", row[i].median_ns,
                                 row[i].ci95_low_ns, row[i].ci95_high_ns, &row[i]});
        add(m, &(struct measure){m->name[i], row[i].case_id, "arena", "bytes",
                                 run_arena_bytes(r, row[i].case_id), NAN, NAN, &row[i]});
    }
    for (size_t i = 0; i < r->perplexity.n; i++)
        if (is_ok(ppl[i].status)) /* its checkpoint tells it from others of its case */
            add(m, &(struct measure){ppl[i].repro, ppl[i].case_id, "perplexity", "", ppl[i].ppl,
                                     ppl[i].ppl_ci95_low, ppl[i].ppl_ci95_high, NULL});
}

static void measures_free(struct measures *m)
{
    for (int i = 0; i < m->n_names; i++)
        free(m->name[i]);
    free(m->name);
    free(m->v);
    *m = (struct measures){0};
}

/* ---- one document ------------------------------------------------------------------------- */

static void print_rows(FILE *f, const char *name, const struct table *t, const struct rows *rows)
{
    fprintf(f, ",\n\"%s\": [", name);
    for (size_t i = 0; i < rows->n; i++) {
        fputs(i ? ",\n" : "\n", f);
        row_print(f, FORMAT_JSON, t, NULL, (const char *)rows->row + i * t->row_size);
    }
    fputs(rows->n ? "\n]" : "]", f);
}

/* Keys that readers of google/benchmark's files look for, before the columns of the row. */
static void print_benchmark(FILE *f, const char *name, const struct latency_row *row)
{
    static const struct text_table_column columns[] = {
        {.name = "name"},
        {.name = "run_name"},
        {.name = "run_type"},
        {.name = "iterations", .number = true},
        {.name = "real_time", .number = true},
        {.name = "cpu_time", .number = true},
        {.name = "time_unit"},
        {.name = "error_occurred", .number = true},
        {.name = "error_message"},
    };
    const struct table *const t = &tables[TABLE_LATENCY];
    int64_t calls;
    char iterations[NUMBER_SIZE] = "", real[NUMBER_SIZE], cpu[NUMBER_SIZE];
    struct bytes first, own;
    FILE *const a = bytes_begin(&first), *const b = bytes_begin(&own);
    const bool ok = is_ok(row->status);
    const char *const text[] = {
        name,
        name,
        "iteration",
        iterations,
        row_field(t, find_column(t, "median_ns"), row, real),
        row_field(t, find_column(t, "cpu_time_median_ns"), row, cpu),
        "ns",
        ok ? "false" : "true",
        ok ? "" : row->status_detail,
    };

    if (ok && row->samples != I64_EMPTY && row->inner_calls != I64_EMPTY &&
        !__builtin_mul_overflow(row->samples, row->inner_calls, &calls))
        snprintf(iterations, sizeof(iterations), "%lld", (long long)calls);
    text_row_print(a, FORMAT_JSON, columns, text, ARRAY_LEN(columns));
    row_print(b, FORMAT_JSON, t, NULL, row);
    bytes_end(a, &first);
    bytes_end(b, &own);
    /* one object of the two */
    fprintf(f, "%.*s,%s", (int)strlen(first.data) - 1, first.data, own.data + 1);
    free(first.data);
    free(own.data);
}

enum status export_json(FILE *f, const struct run *r, const struct names *columns, struct err *e)
{
    const struct table *const t = &tables[TABLE_LATENCY];
    struct measures m;
    struct selection s;

    TRY(columns_select(&s, t, columns->v, columns->n, e));
    measures_make(&m, r);
    fputs("{\n\"context\": ", f);
    if (r->env.n > 0)
        row_print(f, FORMAT_JSON, &tables[TABLE_ENV], NULL, r->env.row);
    else
        fputs("{}", f);
    fputs(",\n\"benchmarks\": [", f);
    for (size_t i = 0; i < r->latency.n; i++) {
        const struct latency_row *const row = (const struct latency_row *)r->latency.row + i;
        fputs(i ? ",\n" : "\n", f);
        if (columns->n > 0)
            row_print(f, FORMAT_JSON, t, &s, row);
        else
            print_benchmark(f, m.name[i], row);
    }
    fputs(r->latency.n ? "\n]" : "]", f);
    print_rows(f, "memory", &tables[TABLE_MEMORY], &r->memory);
    print_rows(f, "perplexity", &tables[TABLE_PERPLEXITY], &r->perplexity);
    print_rows(f, "study", &tables[TABLE_STUDY], &r->study);
    fputs("\n}\n", f);
    measures_free(&m);
    return OK;
}

enum status export_run(FILE *f, enum export_to to, const struct run *r, struct err *e)
{
    static export_fn *const formats[] = {[EXPORT_OPENMETRICS] = export_openmetrics,
                                         [EXPORT_JUNIT] = export_junit,
                                         [EXPORT_FOM] = export_fom};
    struct measures m;

    if (to == EXPORT_JSON)
        return export_json(f, r, &(struct names){0}, e);
    measures_make(&m, r);
    formats[to](f, r, &m);
    measures_free(&m);
    return OK;
}

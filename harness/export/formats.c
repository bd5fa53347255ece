/* SPDX-License-Identifier: MIT
 *
 * The formats, each as the program that reads it documents it. */
#include "export.h"

#include "harness/measure/study_verdict.h"

/* ---- rows that went wrong -------------------------------------------------------------------- */

/* The tables whose rows a format has to account for. */
static const enum table_id counted[] = {TABLE_LATENCY, TABLE_PERPLEXITY, TABLE_STUDY};

static const void *row_at(const struct run *r, enum table_id table, size_t i)
{
    return (const char *)r->table[table].row + i * tables[table].row_size;
}

/* What a row ended as. A learning rate that does not work is a result. */
static enum row_status row_end(enum table_id table, const void *row)
{
    const struct study_row *const job = row;
    const int is = word_index(row_text(&tables[table], row, "status"), row_status_name);

    if (table == TABLE_STUDY && is == ROW_WRONG && strcmp(job->role, "tune") == 0)
        return ROW_SKIPPED;
    return is < 0 ? ROW_FAILED : (enum row_status)is;
}

struct row_ends {
    int of[ROW_STATUS_COUNT], failed; /* timeouts and suspects among them */
    bool ended;                       /* all rows are there, and none was interrupted */
};

static void count_rows(struct row_ends *n, enum table_id table, const struct run *r)
{
    for (size_t i = 0; i < r->table[table].n; i++)
        n->of[row_end(table, row_at(r, table, i))]++;
    n->failed = n->of[ROW_FAILED] + n->of[ROW_TIMEOUT] + n->of[ROW_SUSPECT];
    n->ended = r->ended && n->of[ROW_INTERRUPTED] == 0;
}

static struct row_ends count_all(const struct run *r)
{
    struct row_ends n = {.ended = r->ended};

    for (size_t k = 0; k < ARRAY_LEN(counted); k++)
        count_rows(&n, counted[k], r);
    return n;
}

/* A row's name beside that of the same case in other tables. */
static const char *row_name(char buf[2 * LINE_SIZE], const struct run *r, const struct measures *m,
                            enum table_id table, size_t i)
{
    const struct study_row *const job = (const struct study_row *)r->study.row + i;

    if (table == TABLE_LATENCY)
        return m->name[i];
    if (table == TABLE_PERPLEXITY)
        return ((const struct perplexity_row *)r->perplexity.row)[i].repro;
    snprintf(buf, 2 * LINE_SIZE, "%s %s %s%s %s seed=%lld lr=%g", job->contender, job->size,
             job->corpus, study_budget_text(job).s, job->role, (long long)job->seed, job->lr);
    return buf;
}

/* ---- OpenMetrics --------------------------------------------------------------------------- */

static void put_label(FILE *f, const char *between, const char *name, const char *value)
{
    static const struct text_escape escapes[] = {
        {"\"", "\\\""}, {"\\", "\\\\"}, {"\n", "\\n"}, {NULL, NULL}};

    fprintf(f, "%s%s=\"", between, name);
    text_print_escaped(f, value, escapes);
    fputc('"', f);
}

static void put_sample(FILE *f, const char *family, const struct run *r, const struct measure *m,
                       double value)
{
    const struct env_row *const env = r->env.n > 0 ? r->env.row : NULL;

    fputs(family, f);
    put_label(f, "{", "case", m->name);
    if (m->row) {
        put_label(f, ",", "variant", m->row->variant);
        put_label(f, ",", "backend", m->row->backend);
        put_label(f, ",", "workload", m->row->workload);
    }
    if (env) {
        put_label(f, ",", "host_id", env->host_id);
        put_label(f, ",", "commit", env->git_commit);
    }
    fprintf(f, "} %.9g\n", value);
}

static void put_family(FILE *f, const char *family, const char *unit, const char *help)
{
    fprintf(f, "# TYPE %s gauge\n", family);
    if (*unit)
        fprintf(f, "# UNIT %s %s\n", family, unit);
    fprintf(f, "# HELP %s %s\n", family, help);
}

/* Skipped rows are neither: nobody has to look at them. */
static void put_row_ends(FILE *f, const struct run *r, const struct measures *m)
{
    static const char family[] = "bench_row_ok";
    char name[2 * LINE_SIZE];

    put_family(f, family, "",
               "1: the row is ok; 0: wrong, failed, timed out, suspect or interrupted.");
    for (size_t k = 0; k < ARRAY_LEN(counted); k++)
        for (size_t i = 0; i < r->table[counted[k]].n; i++) {
            const void *const row = row_at(r, counted[k], i);
            const enum row_status is = row_end(counted[k], row);
            const struct measure one = {.name = row_name(name, r, m, counted[k], i),
                                        .row = counted[k] == TABLE_LATENCY ? row : NULL};
            if (is != ROW_SKIPPED)
                put_sample(f, family, r, &one, is == ROW_OK);
        }
}

void export_openmetrics(FILE *f, const struct run *r, const struct measures *m)
{
    static const struct {
        const char *family, *unit, *help, *what;
        double scale;
        size_t at;
    } families[] = {
        {"bench_median_seconds", "seconds", "Median time of a call.", "time", 1e-9,
         offsetof(struct measure, value)},
        {"bench_median_low_seconds", "seconds", "Lower end of its 95 % interval.", "time", 1e-9,
         offsetof(struct measure, low)},
        {"bench_median_high_seconds", "seconds", "Upper end of its 95 % interval.", "time", 1e-9,
         offsetof(struct measure, high)},
        {"bench_arena_bytes", "bytes", "Memory that the case placed.", "arena", 1,
         offsetof(struct measure, value)},
        {"bench_perplexity", "", "Perplexity of a checkpoint on a text.", "perplexity", 1,
         offsetof(struct measure, value)},
    };

    for (size_t k = 0; k < ARRAY_LEN(families); k++) {
        put_family(f, families[k].family, families[k].unit, families[k].help);
        for (int i = 0; i < m->n; i++) {
            double x;
            memcpy(&x, (const char *)&m->v[i] + families[k].at, sizeof(x));
            if (strcmp(m->v[i].quantity, families[k].what) == 0 && isfinite(x))
                put_sample(f, families[k].family, r, &m->v[i], families[k].scale * x);
        }
    }
    put_row_ends(f, r, m);
    put_family(f, "bench_run_ended", "", "1: the run came to its end.");
    fprintf(f, "bench_run_ended %d\n", count_all(r).ended);
    fputs("# EOF\n", f);
}

/* ---- JUnit ---------------------------------------------------------------------------------- */

static void put_xml(FILE *f, const char *text)
{
    static const struct text_escape escapes[] = {
        {"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {NULL, NULL}};

    for (; *text; text++) {
        const struct text_escape *const is = text_escape_at(escapes, text);
        if (is)
            fputs(is->as, f);
        else if ((unsigned char)*text >= ' ') /* XML has no control characters */
            fputc(*text, f);
    }
}

/* The element for what is not ok. */
static const char *const element[ROW_STATUS_COUNT] = {
    [ROW_SKIPPED] = "skipped", [ROW_FAILED] = "error",      [ROW_WRONG] = "failure",
    [ROW_TIMEOUT] = "error",   [ROW_INTERRUPTED] = "error", [ROW_SUSPECT] = "error",
};

static double seconds_of(enum table_id table, const void *row)
{
    const double s = table == TABLE_LATENCY ? 1e-9 * ((const struct latency_row *)row)->median_ns
                     : table == TABLE_STUDY ? ((const struct study_row *)row)->train_s
                                            : 0;

    return isfinite(s) ? s : 0;
}

static void put_test(FILE *f, enum table_id table, const void *row, const char *name)
{
    const struct table *const t = &tables[table];
    const char *const what =
        table == TABLE_LATENCY ? ((const struct latency_row *)row)->workload : t->name;
    const char *const is = element[row_end(table, row)];

    fputs("<testcase classname=\"bench.", f);
    put_xml(f, what);
    fputc('.', f);
    put_xml(f, row_text(t, row, "variant"));
    fputs("\" name=\"", f);
    put_xml(f, name);
    fprintf(f, "\" time=\"%.9f\"", seconds_of(table, row));
    if (!is) {
        fputs("/>\n", f);
        return;
    }
    fprintf(f, "><%s message=\"", is);
    put_xml(f, row_text(t, row, "status_detail"));
    fputs("\"/></testcase>\n", f);
}

void export_junit(FILE *f, const struct run *r, const struct measures *m)
{
    const struct row_ends n = count_all(r);
    char name[2 * LINE_SIZE];
    const char *run_id = NULL;
    size_t tests = !r->ended;
    double total = 0;

    for (size_t k = 0; k < ARRAY_LEN(counted); k++)
        for (size_t i = 0; i < r->table[counted[k]].n; i++, tests++) {
            const void *const row = row_at(r, counted[k], i);
            run_id = run_id ? run_id : row_text(&tables[counted[k]], row, "run_id");
            total += seconds_of(counted[k], row);
        }
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"bench", f);
    if (run_id) {
        fputc(' ', f);
        put_xml(f, run_id);
    }
    fprintf(f, "\" tests=\"%zu\" failures=\"%d\" errors=\"%d\" skipped=\"%d\" time=\"%.9f\">\n",
            tests, n.of[ROW_WRONG], n.failed + n.of[ROW_INTERRUPTED] + !r->ended, n.of[ROW_SKIPPED],
            total);
    for (size_t k = 0; k < ARRAY_LEN(counted); k++)
        for (size_t i = 0; i < r->table[counted[k]].n; i++)
            put_test(f, counted[k], row_at(r, counted[k], i), row_name(name, r, m, counted[k], i));
    if (!r->ended) /* readers take a suite without errors for a success, however short */
        fputs("<testcase classname=\"bench\" name=\"run\"><error message=\"not "
              "finished\"/></testcase>\n",
              f);
    fputs("</testsuite>\n</testsuites>\n", f);
}

/* ---- figures of merit: lines for harnesses that read output with regular expressions --------- */

static void put_merit(FILE *f, const char *case_id, const char *what, double value,
                      const char *unit)
{
    if (isfinite(value)) /* "1": a number without a unit, so that every line has five words */
        fprintf(f, "fom %s %s %.9g %s\n", case_id, what, value, *unit ? unit : "1");
}

static void put_verdict(FILE *f, const struct row_ends *n)
{
    if (n->ended && n->of[ROW_WRONG] + n->failed == 0)
        fputs("bench: all ok\n", f);
    else
        fprintf(f, "bench: %d wrong, %d failed%s\n", n->of[ROW_WRONG], n->failed,
                n->ended ? "" : ", not finished");
}

static void put_jobs(FILE *f, const struct rows *study)
{
    const struct study_row *const row = study->row;

    for (size_t i = 0; i < study->n; i++) {
        if (strcmp(row[i].status, row_status_name[ROW_OK]) != 0)
            continue;
        put_merit(f, row[i].case_id, "valid", row[i].valid_nats, "nats");
        put_merit(f, row[i].case_id, "test", row[i].test_nats, "nats");
        put_merit(f, row[i].case_id, "valid_return", row[i].valid_return, "");
        put_merit(f, row[i].case_id, "test_return", row[i].test_return, "");
        put_merit(f, row[i].case_id, "train", row[i].train_s, "s");
    }
}

void export_fom(FILE *f, const struct run *r, const struct measures *m)
{
    const struct row_ends n = count_all(r);

    for (int i = 0; i < m->n; i++)
        if (i == 0 || strcmp(m->v[i].case_id, m->v[i - 1].case_id) != 0)
            fprintf(f, "# %s: %s\n", m->v[i].case_id, m->v[i].name);
    for (int i = 0; i < m->n; i++)
        put_merit(f, m->v[i].case_id, m->v[i].quantity, m->v[i].value, m->v[i].unit);
    put_jobs(f, &r->study);
    put_verdict(f, &n);
}

void export_study_fom(FILE *f, const struct rows *study, bool ended)
{
    const struct run run = {.study = *study, .ended = ended};
    struct row_ends n = {0};

    put_jobs(f, study);
    count_rows(&n, TABLE_STUDY, &run);
    put_verdict(f, &n);
}

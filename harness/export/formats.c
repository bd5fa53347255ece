/* SPDX-License-Identifier: MIT
 *
 * The formats, each as the program that reads it documents it. */
#include "export.h"

#include "variants/base/json_text.h"

#include <stdlib.h>
#include <string.h>

/* "NAME" for times, "NAME arena" for other measures of the same case. */
static void full_name(const struct measure *m, char *buf, size_t size)
{
    const bool time = strcmp(m->quantity, "time") == 0;

    snprintf(buf, size, "%s%s%s", m->name, time ? "" : " ", time ? "" : m->quantity);
}

static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static enum status dump(FILE *f, json_t *doc, struct err *e)
{
    char *const text = doc ? json_write(doc, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) : NULL;

    json_decref(doc);
    if (!text)
        return fail(e, E_NOMEM, "no memory for a document");
    fprintf(f, "%s\n", text);
    free(text);
    return OK;
}

/* ---- github-action-benchmark: tool "customSmallerIsBetter" --------------------------------- */

enum status export_action(FILE *f, const struct run *r, const struct measures *m, struct err *e)
{
    json_t *const doc = json_array();
    (void)r;

    for (int i = 0; i < m->n; i++) {
        char name[LINE_SIZE + 32], range[64];
        full_name(&m->v[i], name, sizeof(name));
        json_t *const one =
            json_pack("{s:s, s:s, s:f}", "name", name, "unit",
                      *m->v[i].unit ? m->v[i].unit : m->v[i].quantity, "value", m->v[i].value);
        if (isfinite(m->v[i].low)) {
            snprintf(range, sizeof(range), "%.6g to %.6g", m->v[i].low, m->v[i].high);
            json_object_set_new(one, "range", json_string(range));
        }
        if (m->v[i].row)
            json_object_set_new(one, "extra", json_string(m->v[i].row->repro));
        if (json_array_append_new(doc, one) != 0)
            return json_decref(doc), fail(e, E_NOMEM, "no memory for a document");
    }
    return dump(f, doc, e);
}

/* ---- Bencher Metric Format ----------------------------------------------------------------- */

enum status export_bencher(FILE *f, const struct run *r, const struct measures *m, struct err *e)
{
    json_t *const doc = json_object();
    (void)r;

    for (int i = 0; i < m->n; i++) {
        const struct measure *const v = &m->v[i];
        const char *const slug = strcmp(v->quantity, "time") == 0 ? "latency" : v->quantity;
        json_t *of_case = json_object_get(doc, v->name);
        if (!of_case) {
            json_object_set_new(doc, v->name, json_object());
            of_case = json_object_get(doc, v->name);
        }
        json_t *const one = json_pack("{s:f}", "value", v->value);
        if (isfinite(v->low)) {
            json_object_set_new(one, "lower_value", number(v->low));
            json_object_set_new(one, "upper_value", number(v->high));
        }
        json_object_set_new(of_case, slug, one);
    }
    return dump(f, doc, e);
}

/* ---- OpenMetrics --------------------------------------------------------------------------- */

static void put_label(FILE *f, const char *between, const char *name, const char *value)
{
    fprintf(f, "%s%s=\"", between, name);
    for (; *value; value++)
        if (*value == '"' || *value == '\\')
            fprintf(f, "\\%c", *value);
        else if (*value == '\n')
            fputs("\\n", f);
        else
            fputc(*value, f);
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

enum status export_openmetrics(FILE *f, const struct run *r, const struct measures *m,
                               struct err *e)
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
    (void)e;

    for (size_t k = 0; k < ARRAY_LEN(families); k++) {
        fprintf(f, "# TYPE %s gauge\n", families[k].family);
        if (*families[k].unit)
            fprintf(f, "# UNIT %s %s\n", families[k].family, families[k].unit);
        fprintf(f, "# HELP %s %s\n", families[k].family, families[k].help);
        for (int i = 0; i < m->n; i++) {
            double x;
            memcpy(&x, (const char *)&m->v[i] + families[k].at, sizeof(x));
            if (strcmp(m->v[i].quantity, families[k].what) == 0 && isfinite(x))
                put_sample(f, families[k].family, r, &m->v[i], families[k].scale * x);
        }
    }
    fputs("# EOF\n", f);
    return OK;
}

/* ---- JUnit ---------------------------------------------------------------------------------- */

static void put_xml(FILE *f, const char *text)
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
        default:
            if ((unsigned char)*text >= ' ') /* XML has no control characters */
                fputc(*text, f);
        }
}

/* The element for a status; NULL if the case passed. */
static const char *outcome(const char *status)
{
    return strcmp(status, row_status_name[ROW_OK]) == 0        ? NULL
           : strcmp(status, row_status_name[ROW_SKIPPED]) == 0 ? "skipped"
           : strcmp(status, row_status_name[ROW_WRONG]) == 0   ? "failure"
                                                               : "error";
}

static int count(const struct run *r, const char *element)
{
    const struct latency_row *const row = r->latency.row;
    int n = 0;

    for (size_t i = 0; i < r->latency.n; i++) {
        const char *const is = outcome(row[i].status);
        n += is && strcmp(is, element) == 0;
    }
    return n;
}

enum status export_junit(FILE *f, const struct run *r, const struct measures *m, struct err *e)
{
    const struct latency_row *const row = r->latency.row;
    double total_ns = 0;
    (void)e;

    for (size_t i = 0; i < r->latency.n; i++)
        total_ns += isfinite(row[i].median_ns) ? row[i].median_ns : 0;
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"bench", f);
    if (r->latency.n > 0) {
        fputc(' ', f);
        put_xml(f, row->run_id);
    }
    fprintf(f, "\" tests=\"%zu\" failures=\"%d\" errors=\"%d\" skipped=\"%d\" time=\"%.9f\">\n",
            r->latency.n + !r->ended, count(r, "failure"), count(r, "error") + !r->ended,
            count(r, "skipped"), 1e-9 * total_ns);
    for (size_t i = 0; i < r->latency.n; i++) {
        const char *const element = outcome(row[i].status);
        fputs("<testcase classname=\"bench.", f);
        put_xml(f, row[i].workload);
        fputc('.', f);
        put_xml(f, row[i].variant);
        fputs("\" name=\"", f);
        put_xml(f, m->name[i]);
        fprintf(f, "\" time=\"%.9f\"", isfinite(row[i].median_ns) ? 1e-9 * row[i].median_ns : 0);
        if (!element) {
            fputs("/>\n", f);
            continue;
        }
        fprintf(f, "><%s message=\"", element);
        put_xml(f, row[i].status_detail);
        fputs("\"/></testcase>\n", f);
    }
    if (!r->ended) /* readers take a suite without errors for a success, however short */
        fputs("<testcase classname=\"bench\" name=\"run\"><error message=\"not "
              "finished\"/></testcase>\n",
              f);
    fputs("</testsuite>\n</testsuites>\n", f);
    return OK;
}

/* ---- figures of merit: lines for harnesses that read output with regular expressions --------- */

static void put_merit(FILE *f, const char *case_id, const char *what, double value,
                      const char *unit)
{
    if (isfinite(value)) /* "1": a number without a unit, so that every line has five words */
        fprintf(f, "fom %s %s %.9g %s\n", case_id, what, value, *unit ? unit : "1");
}

struct bad_rows {
    int wrong, failed;
    bool ended; /* all rows are there, and none was interrupted */
};

static void count_bad(struct bad_rows *bad, const char *status)
{
    bad->wrong += strcmp(status, row_status_name[ROW_WRONG]) == 0;
    bad->failed += strcmp(status, row_status_name[ROW_FAILED]) == 0 ||
                   strcmp(status, row_status_name[ROW_TIMEOUT]) == 0;
    bad->ended = bad->ended && strcmp(status, row_status_name[ROW_INTERRUPTED]) != 0;
}

/* "all ok": every case that was planned is ok or skipped. */
static void put_verdict(FILE *f, const struct bad_rows *bad)
{
    if (bad->ended && bad->wrong + bad->failed == 0)
        fputs("bench: all ok\n", f);
    else
        fprintf(f, "bench: %d wrong, %d failed%s\n", bad->wrong, bad->failed,
                bad->ended ? "" : ", not finished");
}

enum status export_fom(FILE *f, const struct run *r, const struct measures *m, struct err *e)
{
    const struct latency_row *const row = r->latency.row;
    const struct perplexity_row *const ppl = r->perplexity.row;
    struct bad_rows bad = {.ended = r->ended};

    (void)e;
    for (int i = 0; i < m->n; i++)
        if (i == 0 || strcmp(m->v[i].case_id, m->v[i - 1].case_id) != 0)
            fprintf(f, "# %s: %s\n", m->v[i].case_id, m->v[i].name);
    for (int i = 0; i < m->n; i++)
        put_merit(f, m->v[i].case_id, m->v[i].quantity, m->v[i].value, m->v[i].unit);
    for (size_t i = 0; i < r->latency.n; i++)
        count_bad(&bad, row[i].status);
    for (size_t i = 0; i < r->perplexity.n; i++)
        count_bad(&bad, ppl[i].status);
    put_verdict(f, &bad);
    return OK;
}

void export_study_fom(FILE *f, const struct rows *study, bool ended)
{
    const struct study_row *const row = study->row;
    struct bad_rows bad = {.ended = ended};

    for (size_t i = 0; i < study->n; i++) {
        const bool tunes = strcmp(row[i].role, "tune") == 0;
        const bool wrong = strcmp(row[i].status, row_status_name[ROW_WRONG]) == 0;
        if (!(tunes && wrong)) /* a rate that does not work is a result */
            count_bad(&bad, row[i].status);
        if (strcmp(row[i].status, row_status_name[ROW_OK]) != 0)
            continue;
        put_merit(f, row[i].case_id, "valid", row[i].valid_nats, "nats");
        put_merit(f, row[i].case_id, "test", row[i].test_nats, "nats");
        put_merit(f, row[i].case_id, "valid_return", row[i].valid_return, "");
        put_merit(f, row[i].case_id, "test_return", row[i].test_return, "");
        put_merit(f, row[i].case_id, "train", row[i].train_s, "s");
    }
    put_verdict(f, &bad);
}

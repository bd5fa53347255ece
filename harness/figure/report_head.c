/* SPDX-License-Identifier: MIT
 *
 * The upper part of the report: the verdict, the machine, and the matrix of variants and backends.
 */
#include "harness/table/keys.h"
#include "harness/util/units.h"
#include "report.h"

#include <stdlib.h>
#include <string.h>

static const struct env_row *env_of(const struct plot_data *d)
{
    return d->table[TABLE_ENV].n > 0 ? d->table[TABLE_ENV].row : NULL;
}

/* ---- the verdict -------------------------------------------------------------------------- */

void report_verdict(FILE *f, const struct plot_data *d)
{
    const struct rows *const rows = &d->table[TABLE_LATENCY];
    const struct latency_row *const v = rows->row;
    int count[ROW_STATUS_COUNT] = {0};
    long long samples = 0, disturbed = 0, unchecked = 0;

    for (size_t i = 0; i < rows->n; i++) {
        for (int s = 0; s < ROW_STATUS_COUNT; s++)
            count[s] += strcmp(v[i].status, row_status_name[s]) == 0;
        if (v[i].samples != I64_EMPTY)
            samples += v[i].samples;
        if (v[i].samples_disturbed != I64_EMPTY)
            disturbed += v[i].samples_disturbed;
        unchecked += strcmp(v[i].status, row_status_name[ROW_OK]) == 0 && !isfinite(v[i].err_limit);
    }
    const bool good =
        count[ROW_WRONG] + count[ROW_FAILED] + count[ROW_TIMEOUT] + count[ROW_INTERRUPTED] == 0;
    fprintf(f, "<p class=\"verdict %s\"><b>%d of %zu rows measured", good ? "good" : "bad",
            count[ROW_OK], rows->n);
    if (count[ROW_OK] > 0 && unchecked == 0)
        fputs(", each checked against the reference before it was timed", f);
    fputs(".</b>", f);
    for (int s = 1; s < ROW_STATUS_COUNT; s++)
        if (count[s] > 0)
            fprintf(f, " %d %s.", count[s], row_status_name[s]);
    if (unchecked > 0)
        fprintf(f, " %lld not checked against the reference.", unchecked);
    if (samples > 0)
        fprintf(f, " %lld of %lld samples were interrupted by other processes.", disturbed,
                samples);
    fputs("</p>\n", f);
}

/* ---- the machine -------------------------------------------------------------------------- */

static void fact(FILE *f, const struct env_row *env, const char *label, const char *column)
{
    const struct table *const t = &tables[TABLE_ENV];
    char num[NUMBER_SIZE];

    for (int i = 0; i < t->n; i++)
        if (strcmp(t->columns[i].name, column) == 0 && *row_field(t, i, env, num)) {
            fprintf(f, "<div><dt>%s</dt><dd>", label);
            html_value(f, t, i, env);
            fputs("</dd></div>\n", f);
        }
}

/* What the card says, and the column of env.csv it comes from. */
static const char *const facts[][2] = {
    {"CPU", "cpu_model"},
    {"instructions", "isa"},
    {"hypervisor", "hypervisor"},
    {"cores", "cores"},
    {"cores allowed", "allowed_cores"},
    {"CPUs", "cpus"},
    {"NUMA nodes", "numa_nodes"},
    {"L1d", "l1d_bytes"},
    {"L2", "l2_bytes"},
    {"L3", "l3_bytes"},
    {"memory", "memory_bytes"},
    {"system", "kernel"},
    {"governor", "governor"},
    {"boost", "boost"},
    {"load before", "load_1min"},
    {"steal, %", "steal_pct"},
    {"A/A noise, %", "aa_noise_pct"},
    {"peaks with threads", "peak_threads"},
    {"peak, baseline", "peak_flop_per_s_ref"},
    {"peak, AVX2", "peak_flop_per_s_avx2"},
    {"peak, AVX-512", "peak_flop_per_s_avx512"},
    {"read L1", "read_byte_per_s_l1"},
    {"read L2", "read_byte_per_s_l2"},
    {"read L3", "read_byte_per_s_l3"},
    {"read DRAM", "read_byte_per_s_dram"},
    {"compiler", "compiler"},
    {"commit", "git_commit"},
    {"work tree modified", "git_dirty"},
    {"OpenMP", "openmp"},
    {"OpenBLAS", "openblas_version"},
    {"OpenBLAS kernels", "openblas_core"},
    {"oneDNN", "onednn_version"},
    {"overrides", "env_overrides"},
    {"started", "started_at_utc"},
    {"finished", "finished_at_utc"},
    {"exit code", "exit_code"},
};

void report_machine(FILE *f, const struct plot_data *d)
{
    const struct env_row *const env = env_of(d);

    if (!env) {
        fputs("<p>env.csv has no row: the machine is not known.</p>\n", f);
        return;
    }
    fputs("<dl class=\"card\">\n", f);
    for (size_t i = 0; i < ARRAY_LEN(facts); i++)
        fact(f, env, facts[i][0], facts[i][1]);
    fputs("</dl>\n<p>The command that repeats it:</p>\n<p class=\"command\"><button "
          "type=\"button\" class=\"copy\" data-copy=\"",
          f);
    html_text(f, env->argv);
    fputs("\">copy</button> <code>", f);
    html_text(f, env->argv);
    fputs("</code></p>\n", f);
}

/* ---- variants and backends ---------------------------------------------------------------- */

struct tally {
    double logs; /* of time / best time of the same case */
    int n;
};
struct matrix {
    struct plot_names variants, backends;
    struct tally *bcase;  /* [variants * backends] */
    struct tally *common; /* [backends], of the cases that all backends with a time have */
    bool *timed, *seen;   /* [backends]: has a time at all; has one of the case at hand */
};

static bool has_time(const struct latency_row *r)
{
    return strcmp(r->status, row_status_name[ROW_OK]) == 0 && r->median_ns > 0;
}

static int by_style(const void *a, const void *b)
{
    const int x = ((const struct plot_name *)a)->style, y = ((const struct plot_name *)b)->style;
    return (x > y) - (x < y);
}

static int index_of(const struct plot_names *names, const char *text)
{
    for (int i = 0; i < names->n; i++)
        if (strcmp(names->v[i].text, text) == 0)
            return i;
    return 0;
}

static enum status name_all(struct matrix *m, const struct rows *rows, struct err *e)
{
    const struct latency_row *const v = rows->row;
    enum status st = OK;
    int index;

    for (size_t i = 0; i < rows->n && st == OK; i++) {
        st = plot_name(&index, &m->variants, v[i].variant, plot_variant_style(v[i].variant), e);
        if (st == OK)
            st = plot_name(&index, &m->backends, v[i].backend, plot_backend_style(v[i].backend), e);
    }
    qsort(m->variants.v, (size_t)m->variants.n, sizeof(*m->variants.v), by_style);
    qsort(m->backends.v, (size_t)m->backends.n, sizeof(*m->backends.v), by_style);
    const size_t n = (size_t)m->backends.n;
    m->bcase = calloc((size_t)m->variants.n * n + 1, sizeof(*m->bcase));
    m->common = calloc(n + 1, sizeof(*m->common));
    m->timed = calloc(n + 1, sizeof(*m->timed));
    m->seen = calloc(n + 1, sizeof(*m->seen));
    if (st == OK && (!m->bcase || !m->common || !m->timed || !m->seen))
        st = fail(e, E_NOMEM, "no memory for a page  -> free some");
    return st;
}

static void count_in(struct tally *c, double behind)
{
    c->logs += behind;
    c->n++;
}

static void tally(struct matrix *m, const struct rows *rows, const struct keys *k)
{
    const struct latency_row *const v = rows->row;

    for (size_t i = 0; i < rows->n; i++)
        if (has_time(&v[i]))
            m->timed[index_of(&m->backends, v[i].backend)] = true;
    for (size_t i = 0; i < rows->n; i++) {
        const int backend = index_of(&m->backends, v[i].backend);
        double best = v[i].median_ns;
        if (!has_time(&v[i]))
            continue;
        memset(m->seen, 0, (size_t)m->backends.n * sizeof(*m->seen));
        for (size_t j = 0; j < rows->n; j++)
            if (has_time(&v[j]) && strcmp(k->key[i], k->key[j]) == 0) {
                m->seen[index_of(&m->backends, v[j].backend)] = true;
                best = fmin(best, v[j].median_ns);
            }
        const double behind = log(v[i].median_ns / best);
        count_in(&m->bcase[index_of(&m->variants, v[i].variant) * m->backends.n + backend], behind);
        if (memcmp(m->seen, m->timed, (size_t)m->backends.n * sizeof(*m->seen)) == 0)
            count_in(&m->common[backend], behind);
    }
}

/* Over all variants: who is how far behind the fastest of each case, where all have that case.
 * Means of different cases would say nothing of each other. */
static void print_fastest(FILE *f, const struct matrix *m)
{
    int best = -1, compared = 0;
    double least = INFINITY;

    for (int b = 0; b < m->backends.n; b++) {
        const struct tally *const c = &m->common[b];
        compared += m->timed[b];
        if (c->n > 0 && c->logs / c->n < least) {
            least = c->logs / c->n;
            best = b;
        }
    }
    if (best < 0 || compared < 2)
        return;
    fputs("<p class=\"verdict good\"><b>Fastest backend over all: ", f);
    html_text(f, m->backends.v[best].text);
    fprintf(f,
            "</b>, %s of the best time of each case (geometric mean; %d cases that all %d backends "
            "have).</p>\n",
            units_ratio(exp(least)).s, m->common[best].n, compared);
}

static void print_matrix(FILE *f, const struct matrix *m)
{
    print_fastest(f, m);
    fputs("<p>Time over the time of the fastest backend of the same case, geometric mean; in "
          "brackets how many cases. 1.00x is the fastest everywhere.</p>\n<div class=\"scroll\" "
          "tabindex=\"0\"><table class=\"matrix\"><thead><tr><th scope=\"col\">variant</th>",
          f);
    for (int b = 0; b < m->backends.n; b++) {
        fputs("<th scope=\"col\">", f);
        html_text(f, m->backends.v[b].text);
        fputs("</th>", f);
    }
    fputs("</tr></thead>\n<tbody>\n", f);
    for (int i = 0; i < m->variants.n; i++) {
        fputs("<tr><th scope=\"row\">", f);
        html_text(f, m->variants.v[i].text);
        fputs("</th>", f);
        for (int b = 0; b < m->backends.n; b++) {
            const struct tally *const c = &m->bcase[i * m->backends.n + b];
            const double mean = c->n ? exp(c->logs / c->n) : NAN;
            if (c->n)
                fprintf(f, "<td class=\"n%s\">%s <small>(%d)</small></td>",
                        mean < 1.005 ? " best" : "", units_ratio(mean).s, c->n);
            else
                fputs("<td class=\"n\">-</td>", f);
        }
        fputs("</tr>\n", f);
    }
    fputs("</tbody></table></div>\n", f);
}

enum status report_matrix(FILE *f, const struct plot_data *d, struct err *e)
{
    const struct rows *const rows = &d->table[TABLE_LATENCY];
    struct matrix m = {0};
    struct keys k = {0};
    struct axis axis;

    if (rows->n == 0) {
        fputs("<p>latency.csv has no row.</p>\n", f);
        return OK;
    }
    enum status st = axis_find(&axis, "backend", e);
    if (st == OK)
        st = keys_make(&k, TABLE_LATENCY, rows, &axis, e);
    if (st == OK)
        st = name_all(&m, rows, e);
    if (st == OK) {
        tally(&m, rows, &k);
        print_matrix(f, &m);
    }
    keys_free(&k);
    free(m.bcase);
    free(m.common);
    free(m.timed);
    free(m.seen);
    free(m.variants.v);
    free(m.backends.v);
    return st;
}

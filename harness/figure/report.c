/* SPDX-License-Identifier: MIT
 *
 * The report's page: its parts in order, the figures as inlined SVG, and the tables as links that
 * hold them. Style and script are files in plots/, beside the program. */
#include "report.h"

#include "harness/cli/options.h"

#include <stdlib.h>
#include <string.h>

/* ---- figures ------------------------------------------------------------------------------ */

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* gnuplot's SVG as a part of a page: no prolog, no hover texts, and ids of its own, because all
 * figures share one page. */
static void inline_svg(FILE *f, const char *svg, const char *title, int number)
{
    static const char *const ids[] = {"id='", "id=\"", "href='#", "href=\"#", "url(#"};
    const char *s = strstr(svg, "<svg");

    if (!s)
        return;
    fputs("<svg role=\"img\" aria-label=\"", f);
    html_text(f, title);
    fputs("\"", f);
    for (s += strlen("<svg"); *s; s++) {
        const char *const end = starts(s, "<title>") ? strstr(s, "</title>") : NULL;
        if (end) {
            s = end + strlen("</title>") - 1;
            continue;
        }
        fputc(*s, f);
        for (size_t i = 0; i < ARRAY_LEN(ids); i++)
            if (starts(s, ids[i])) {
                fprintf(f, "%sf%d-", ids[i] + 1, number);
                s += strlen(ids[i]) - 1;
                break;
            }
    }
}

static enum status print_figure(FILE *f, const struct plot *p, const struct bytes *svg, int number,
                                struct err *e)
{
    struct bytes table = {0};
    char name[128];
    FILE *const csv = open_memstream(&table.data, &table.n);

    if (csv)
        plot_print_csv(csv, p);
    if (!csv || fclose(csv) != 0) {
        free(table.data);
        return fail(e, E_NOMEM, "no memory for the numbers of %s  -> free some", p->figure->name);
    }
    fprintf(f, "<figure id=\"figure-%d-%s\">\n<div class=\"scroll paper\" tabindex=\"0\">\n",
            number, p->figure->name);
    inline_svg(f, svg->data, p->figure->title, number);
    fprintf(f, "</div>\n<figcaption><b>%s.</b> %s", p->figure->title, p->figure->caption);
    if (p->why[0]) {
        fputs(" Note: ", f);
        html_text(f, p->why);
        fputs(".", f);
    }
    fputs(" ", f);
    snprintf(name, sizeof(name), "%s.csv", p->figure->name);
    html_download(f, name, "its numbers", &table);
    fputs("</figcaption>\n</figure>\n", f);
    free(table.data);
    return OK;
}

static bool wanted(const struct report *r, const char *name)
{
    for (int i = 0; i < r->figures; i++)
        if (strcmp(r->figure[i], name) == 0)
            return true;
    return r->figures == 0;
}

static void left_out_item(FILE *f, const char *name, const char *why)
{
    fprintf(f, "<li>figure %s: ", name);
    html_text(f, why);
    fputs("</li>\n", f);
}

static enum status one_figure(FILE *f, FILE *left_out, struct report *r, int at,
                              const struct figure *figure, int number, struct err *e)
{
    struct plot p;
    struct bytes svg = {0};
    enum status st = plot_make(&p, figure, &r->run[at], e);

    if (st != OK)
        return st;
    if (p.n > 0)
        st = plot_draw(&svg, &p, PLOT_SVG, 0, e);
    if (p.n == 0) {
        left_out_item(left_out, figure->name, p.why);
    } else if (st == E_UNSUPPORTED) { /* the rest of the page is worth having */
        left_out_item(left_out, figure->name, e->msg);
        r->warnings++;
        st = OK;
    } else if (st == OK) {
        st = print_figure(f, &p, &svg, number, e);
    }
    free(svg.data);
    plot_free(&p);
    return st;
}

enum status report_figures(FILE *f, FILE *left_out, struct report *r, int at, struct err *e)
{
    enum status st = OK;

    for (int i = 0; i < figure_count && st == OK; i++) {
        if (wanted(r, figures[i].name))
            st = one_figure(f, left_out, r, at, &figures[i], at * figure_count + i, e);
        if (*r->stop) /* gnuplot had the signal too: what it says of its end is no news */
            st = fail(e, E_INTERRUPTED, "interrupted");
    }
    return st;
}

/* ---- tables ------------------------------------------------------------------------------- */

static const char *const latency_first[] = {"variant", "backend", "median_ns", NULL};
static const char *const latency_rest[] = {
    "workload",     "phase",        "mem_kind",    "seq_tokens",
    "mem_tokens",   "batch_size",   "layers",      "d_model",
    "heads",        "d_head",       "d_inner",     "gate",
    "norm_place",   "clip",         "clamp_len",   "same_length",
    "kv_heads",     "ffn",          "norm",        "mask",
    "mask_heads",   "rnn_cell",     "halt",        "settings",
    "threads",      "dtype",        "cache_mode",  "ci95_low_ns",
    "ci95_high_ns", "tokens_per_s", "gflop_per_s", "peak_flops_pct",
    "peak_bw_pct",  "bound",        "samples",     "samples_disturbed",
    "max_rel_err",  "err_limit",    "impl",        "gemm_from",
    "rows_from",    "isa_used",     "status",      "status_detail",
    "case_id",      "repro",        NULL};
static const char *const memory_first[] = {"variant", "backend", "arena_peak_bytes", NULL};
static const char *const perplexity_first[] = {"variant", "backend", "ppl", NULL};
static const char *const train_first[] = {"variant", "step", "loss_nats", NULL};

static void print_rows(FILE *f, const struct plot_data *d, int at)
{
    static const struct {
        enum table_id table;
        const char *title;
        const char *const *first, *const *rest;
        bool open;
    } parts[] = {
        {TABLE_LATENCY, "Latency", latency_first, latency_rest, true},
        {TABLE_MEMORY, "Memory", memory_first, NULL, false},
        {TABLE_PERPLEXITY, "Perplexity", perplexity_first, NULL, false},
    };
    char id[64];

    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        const struct table *const t = &tables[parts[i].table];
        if (d->table[parts[i].table].n == 0)
            continue;
        snprintf(id, sizeof(id), "rows-%d-%s", at, t->name);
        fprintf(f, "<details%s><summary>%s: %zu rows</summary>\n", parts[i].open ? " open" : "",
                parts[i].title, d->table[parts[i].table].n);
        report_rows(f, t, &d->table[parts[i].table], id, parts[i].first, parts[i].rest);
        fputs("</details>\n", f);
    }
    for (int i = 0; i < d->n_train; i++) {
        if (d->train[i].rows.n == 0)
            continue;
        fputs("<details><summary>Training ", f);
        html_text(f, d->train[i].name);
        fprintf(f, ": %zu rows</summary>\n", d->train[i].rows.n);
        snprintf(id, sizeof(id), "rows-%d-train-%d", at, i);
        report_rows(f, &tables[TABLE_TRAIN], &d->train[i].rows, id, train_first, NULL);
        fputs("</details>\n", f);
    }
}

static void print_left_out_rows(FILE *f, const struct plot_data *d)
{
    for (int t = TABLE_LATENCY; t <= TABLE_PERPLEXITY; t += TABLE_PERPLEXITY - TABLE_LATENCY) {
        const struct table *const table = &tables[t];
        for (size_t i = 0; i < d->table[t].n; i++) {
            const void *const row = (const char *)d->table[t].row + i * table->row_size;
            const char *const status = row_text(table, row, "status");
            const char *const detail = row_text(table, row, "status_detail");
            if (strcmp(status, row_status_name[ROW_OK]) == 0 && !*detail)
                continue;
            fprintf(f, "<li>%s: ", table->name);
            html_text(f, status);
            fputs(*detail ? ", " : "", f);
            html_text(f, detail);
            fputs(" <code>./bench ", f);
            html_text(f, row_text(table, row, "repro"));
            fputs("</code></li>\n", f);
        }
    }
}

static enum status print_downloads(FILE *f, const struct plot_data *d, const char *name,
                                   struct err *e)
{
    enum status st = OK;

    fputs("<p>", f);
    for (int i = 0; i < d->n_files && st == OK; i++) {
        char path[FILE_PATH], save[FILE_PATH];
        struct bytes file;
        st = file_join(path, d->dir, d->file[i], e);
        if (st == OK)
            st = file_read(&file, path, e);
        if (st != OK)
            break;
        snprintf(save, sizeof(save), "%.200s-%.300s", name, d->file[i]);
        html_download(f, save, d->file[i], &file);
        free(file.data);
    }
    fputs("</p>\n<p>The raw samples are not in this page; they stay in the folder of the "
          "run.</p>\n",
          f);
    return st;
}

/* ---- the page ----------------------------------------------------------------------------- */

static enum status print_file(FILE *f, const char *name, struct err *e)
{
    char path[FILE_PATH];
    struct bytes file;

    if (!options_locate_own(path, sizeof(path), name))
        return fail(e, E_IO, "cannot find %s above the program  -> run bench from its repository",
                    name);
    const enum status st = file_read(&file, path, e);
    if (st == OK)
        fwrite(file.data, 1, file.n, f);
    free(file.data);
    return st;
}

/* The run's own name, else that of its folder. */
static void name_of(const struct plot_data *d, char *buf, size_t size)
{
    const struct env_row *const env = d->table[TABLE_ENV].row;
    char dir[FILE_PATH];
    size_t n = strlen(strcpy(dir, d->dir)); // NOLINT: both of FILE_PATH

    while (n > 1 && dir[n - 1] == '/')
        dir[--n] = '\0';
    const char *const slash = strrchr(dir, '/');
    snprintf(buf, size, "%.200s",
             d->table[TABLE_ENV].n > 0 && env->run_id[0] ? env->run_id
             : slash                                     ? slash + 1
                                                         : dir);
}

static enum status print_run(FILE *f, struct report *r, int at, struct err *e)
{
    const struct plot_data *const d = &r->run[at];
    char name[256], *left_out = NULL;
    size_t size;
    FILE *const left = open_memstream(&left_out, &size);

    if (!left)
        return fail(e, E_NOMEM, "no memory for a page  -> free some");
    name_of(d, name, sizeof(name));
    fputs("<section>\n<h2>Run ", f);
    html_text(f, name);
    fputs("</h2>\n", f);
    report_verdict(f, d);
    fputs("<h3>Machine</h3>\n", f);
    report_machine(f, d);
    fputs("<h3>Variants and backends</h3>\n", f);
    enum status st = report_matrix(f, d, e);
    fputs("<h3>Figures</h3>\n", f);
    if (st == OK)
        st = report_figures(f, left, r, at, e);
    fputs("<h3>All rows</h3>\n", f);
    print_rows(f, d, at);
    print_left_out_rows(left, d);
    if (fclose(left) != 0) {
        free(left_out);
        return fail(e, E_NOMEM, "no memory for a page  -> free some");
    }
    fputs("<h3>Left out, and why</h3>\n", f);
    if (*left_out)
        fprintf(f, "<ul class=\"left\">\n%s</ul>\n", left_out);
    else
        fputs("<p>Nothing.</p>\n", f);
    fputs("<h3>Tables</h3>\n", f);
    if (st == OK)
        st = print_downloads(f, d, name, e);
    fputs("</section>\n", f);
    free(left_out);
    return st;
}

enum status report_write(FILE *f, struct report *r, struct err *e)
{
    char name[256];

    name_of(&r->run[0], name, sizeof(name));
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
          "'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>bench: ",
          f);
    html_text(f, name);
    fputs("</title>\n<style>\n", f);
    enum status st = print_file(f, "plots/report.css", e);
    fputs("</style>\n</head>\n<body>\n<main>\n<h1>Attention variants, measured</h1>\n", f);
    for (int i = 0; i < r->runs && st == OK; i++)
        st = print_run(f, r, i, e);
    fputs("</main>\n<script>\n", f);
    if (st == OK)
        st = print_file(f, "plots/report.js", e);
    fputs("</script>\n</body>\n</html>\n", f);
    return st;
}

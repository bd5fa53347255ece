/* SPDX-License-Identifier: MIT
 *
 * The screen. */
#include "show.h"

#include "clock.h"
#include "human.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void show_flush(struct show *s)
{
    if (fflush(stdout) != 0 && !s->out_error)
        s->out_error = errno;
}

static double now_s(void) { return (double)clock_wall_ns() * 1e-9; }

enum status show_open(struct show *s, const struct options *opt, const struct table *t, int cells,
                      struct err *e)
{
    const char *term = getenv("TERM");
    const bool screen =
        isatty(STDERR_FILENO) && !(term && strcmp(term, "dumb") == 0) && !getenv("CI");
    const enum progress p = (enum progress)opt->progress;

    *s = (struct show){.opt = opt, .cells = cells, .start_s = now_s()};
    s->format = opt->format != FORMAT_AUTO ? (enum format)opt->format
                : isatty(STDOUT_FILENO)    ? FORMAT_TABLE
                                           : FORMAT_CSV;
    s->live = !opt->quiet && (p == PROGRESS_BAR || (p == PROGRESS_AUTO && screen));
    s->plain = !opt->quiet && (p == PROGRESS_PLAIN || (p == PROGRESS_AUTO && !screen));
    return columns_select(&s->columns, t, opt->columns.v, opt->columns.n, e);
}

/* ---- the progress line -------------------------------------------------------------------- */

static void clear_live(struct show *s)
{
    if (s->live_on_screen)
        fputs("\r\033[K", stderr);
    s->live_on_screen = false;
}

void show_note(struct show *s, const char *fmt, ...)
{
    va_list ap;

    clear_live(s);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

/* "2:10 left", from the cells that are done; "" before the first. */
static void time_left(const struct show *s, char *buf, size_t size)
{
    buf[0] = '\0';
    if (s->done == 0)
        return;
    const double left = (now_s() - s->start_s) / s->done * (s->cells - s->done);
    snprintf(buf, size, "%d:%02d left", (int)left / 60, (int)left % 60);
}

void show_progress(struct show *s, const struct result *r)
{
    char label[160], left[32];

    if (!s->live || now_s() - s->last_live_s < 0.1)
        return;
    s->last_live_s = now_s();
    cell_label(r->cell, label, sizeof(label));
    time_left(s, left, sizeof(left));
    fprintf(stderr, "\r\033[K[%3d/%d] %.50s  %d/%d+ samples  %s", s->done + 1, s->cells, label,
            r->n, s->opt->min_samples, left);
    fflush(stderr);
    s->live_on_screen = true;
}

/* ---- the table ---------------------------------------------------------------------------- */

static bool same_heading(const struct cell *a, const struct cell *b)
{
    return a->workload == b->workload && a->phase == b->phase && a->batch == b->batch &&
           a->layers == b->layers && a->d_model == b->d_model && a->heads == b->heads &&
           a->d_head == b->d_head && a->d_inner == b->d_inner && a->threads == b->threads;
}

static void print_heading(struct show *s, const struct cell *c)
{
    if (s->started && same_heading(&s->heading, c))
        return;
    printf("%s%s%s  batch=%d  layers=%d  d=%d  h=%d  d_head=%d  f32  threads=%d\n",
           s->started ? "\n" : "", workload_name[c->workload],
           c->phase == PHASE_FWD || c->workload == WORK_TRAIN ? "" : "  fwd_bwd", c->batch,
           c->layers, c->d_model, c->heads, c->d_head, c->threads);
    printf("%6s %6s  %-14s %-9s %10s  %-19s %9s %8s %6s %10s %10s  %-8s %s\n", "seq", "mem",
           "variant", "backend", "median", "95 % interval", "tok/s", "GFLOP/s", "%peak", "arena",
           "peak RSS", "check", "noise");
    s->heading = *c;
    s->started = true;
}

/* "~" where disturbed samples had to count, "!" where the result was not compared, "few" where
 * there are less than 15 samples. */
static void noise_text(const struct result *r, char *buf, size_t size)
{
    const double half = (r->sum.ci_high - r->sum.ci_low) / 2 / r->sum.median;

    snprintf(buf, size, "%s%s%s%s", human_pct(100 * half).s, r->sum.noisy ? " ~" : "",
             r->cell->opt->check ? "" : " !", strstr(r->detail, "few") ? " few" : "");
}

static void print_cell(struct show *s, const struct result *r, const struct latency_row *row)
{
    const struct cell *c = r->cell;
    char variant[48], noise[64], ci[80];

    print_heading(s, c);
    snprintf(variant, sizeof(variant), "%s%s%s", c->variant->name,
             c->gate && c->gate != c->variant->gate ? "/" : "",
             c->gate && c->gate != c->variant->gate ? c->gate->name : "");
    if (c->mem > 0 && c->mem_kind != MEM_NONE)
        snprintf(variant + strlen(variant), sizeof(variant) - strlen(variant), ":%s",
                 mem_kind_name[c->mem_kind]);
    printf("%6d %6d  %-14s %-9s ", c->seq, c->mem, variant, c->backend->name);
    if (r->status != ROW_OK) {
        printf("%s: %s\n", row_status_name[r->status], r->detail);
        return;
    }
    noise_text(r, noise, sizeof(noise));
    snprintf(ci, sizeof(ci), "[%s %s]", human_ns(r->sum.ci_low).s, human_ns(r->sum.ci_high).s);
    printf("%10s  %-19s %9s %8s %6s %10s %10s  %-8s %s\n", human_ns(row->median_ns).s, ci,
           human_rate(row->tokens_per_s).s, human_rate(row->gflop_per_s).s,
           human_rate(row->peak_flops_pct).s, human_bytes(r->report.arena_bytes).s,
           human_bytes(r->report.rss_peak_bytes).s, c->opt->check ? "ok" : "none", noise);
}

void show_row(struct show *s, const struct result *r, const struct latency_row *row)
{
    const struct table *t = &tables[TABLE_LATENCY];
    char label[160];

    s->done++;
    clear_live(s);
    if (s->plain) {
        cell_label(r->cell, label, sizeof(label));
        fprintf(stderr, "[%d/%d] %s  %s  %s\n", s->done, s->cells, label,
                row_status_name[r->status],
                r->status == ROW_OK ? human_ns(r->sum.median).s : r->detail);
    }
    switch (s->format) {
    case FORMAT_CSV:
        if (!s->started)
            print_csv_header(stdout, t, &s->columns);
        print_csv_row(stdout, t, &s->columns, row);
        break;
    case FORMAT_JSONL:
        print_jsonl_row(stdout, t, &s->columns, row);
        break;
    case FORMAT_MD:
        if (!s->started)
            print_md_header(stdout, t, &s->columns);
        print_md_row(stdout, t, &s->columns, row);
        break;
    default:
        print_cell(s, r, row);
    }
    s->started = true;
    show_flush(s);
}

/* ---- the last lines ----------------------------------------------------------------------- */

/* Same variant, choices and shape: only the backend differs. */
static bool comparable(const struct cell *a, const struct cell *b)
{
    return a->group == b->group && a->variant == b->variant && a->gate == b->gate &&
           a->clip == b->clip && a->mem_kind == b->mem_kind;
}

/* Geometric mean of time on `b` over time on `a`, over the shapes of a variant that both ran. */
static double mean_ratio(const struct seen *seen, int n, const struct variant *v,
                         const struct backend *a, const struct backend *b, int *shapes)
{
    double sum = 0;

    *shapes = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            if (seen[i].cell->variant == v && seen[i].cell->backend == a &&
                seen[k].cell->backend == b && comparable(seen[i].cell, seen[k].cell)) {
                sum += log(seen[k].median_ns / seen[i].median_ns);
                ++*shapes;
            }
    return *shapes ? exp(sum / *shapes) : NAN;
}

static const struct backend *fastest_of(const struct seen *seen, int n, const struct variant *v)
{
    const struct backend *best = NULL;
    int shapes;

    for (int i = 0; i < n; i++) {
        const struct backend *b = seen[i].cell->backend;
        if (seen[i].cell->variant == v && (!best || mean_ratio(seen, n, v, best, b, &shapes) < 1))
            best = b;
    }
    return best;
}

void show_fastest(struct show *s, const struct seen *seen, int n)
{
    if (s->format != FORMAT_TABLE)
        return;
    for (int v = 0; variants[v]; v++) {
        const struct backend *best = fastest_of(seen, n, variants[v]);
        int others = 0, most = 0;
        char line[256] = "";
        for (int b = 0; best && backends[b]; b++) {
            int shapes;
            const double ratio = mean_ratio(seen, n, variants[v], best, backends[b], &shapes);
            if (backends[b] == best || shapes == 0)
                continue;
            const size_t len = strlen(line);
            snprintf(line + len, sizeof(line) - len, ", %s %s", human_ratio(ratio).s,
                     backends[b]->name);
            most = max_int(most, shapes);
            others++;
        }
        if (others)
            printf("%sfastest for %s: %s%s (geometric mean of %d shapes)\n", v ? "" : "\n",
                   variants[v]->name, best->name, line, most);
    }
    show_flush(s);
}

/* SPDX-License-Identifier: MIT
 *
 * bench report: runs as one page that opens without a network. */
#include "harness/figure/report.h"
#include "commands.h"
#include "harness/cli/option_set.h"
#include "harness/figure/plot_run.h"
#include "harness/table/run.h"
#include "harness/util/signals.h"
#include "harness/util/suggest.h"

#include <stdlib.h>
#include <unistd.h>

static enum status write_page(struct report *r, const char *path, struct err *e)
{
    struct bytes page;
    FILE *const f = bytes_open(&page, e);

    if (!f)
        return E_NOMEM;
    enum status st = report_write(f, r, e);
    const enum status closed = bytes_close(f, &page, st == OK ? e : NULL);
    if (st == OK)
        st = closed;
    if (st == OK)
        st = file_replace(path, page.data, page.n, e);
    free(page.data);
    return st;
}

static enum status check(const struct options *o, struct err *e)
{
    const bool given = o->given[option_find("out")] == FROM_USER;

    if (o->words.n == 0)
        return fail(e, E_USAGE, "report needs a run  -> bench report %s/latest -o report.html",
                    given ? "results" : o->out);
    if (!given)
        return fail(e, E_USAGE, "report needs a file  -> bench report %s -o report.html",
                    o->words.v[0]);
    if (access(o->out, F_OK) == 0 && !o->force)
        return fail(e, E_IO, "%s exists  -> overwrite it with --force", o->out);
    return plot_check_names(&o->figures, e);
}

int cmd_report(struct options *opt)
{
    struct plot_data *const runs = calloc((size_t)opt->words.n + 1, sizeof(*runs));
    struct report r = {
        .run = runs,
        .figures = &opt->figures,
    };
    struct err e;
    enum status st = runs ? check(opt, &e) : fail(&e, E_NOMEM, "no memory for runs  -> free some");

    for (int i = 0; runs && i < opt->words.n && st == OK; i++) {
        st = plot_read(&runs[i], opt->words.v[i], &e);
        if (st == OK) {
            r.runs++;
            if (!opt->quiet)
                run_note_doubled(runs[i].dir, runs[i].table[TABLE_LATENCY].doubled +
                                                  runs[i].table[TABLE_PERPLEXITY].doubled);
            st = plot_set_base(&runs[i], opt->base, &e);
        }
    }
    if (st == OK)
        st = write_page(&r, opt->out, &e);
    for (int i = 0; i < r.runs && st == OK && !opt->quiet; i++) {
        if (r.runs > 1)
            text_heading(stderr, runs[i].dir);
        st = plot_run_rank(&runs[i], terminal_color((enum color)opt->color, STDERR_FILENO), &e);
    }
    for (int i = 0; i < r.runs; i++)
        plot_data_free(&runs[i]);
    free(runs);
    if (st == E_INTERRUPTED)
        return signals_exit_code();
    if (st != OK)
        return report_error(st, &e);
    if (r.warnings > 0)
        text_line(stderr, "warning: %d figure%s missing: %s", r.warnings,
                  r.warnings == 1 ? " is" : "s are", r.why.msg);
    printf("%s\n", opt->out);
    return opt->strict && r.warnings > 0 ? EXIT_NOT_TRUSTWORTHY : EXIT_FINE;
}

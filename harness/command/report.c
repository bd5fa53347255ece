/* SPDX-License-Identifier: MIT
 *
 * bench report: runs as one page that opens without a network. */
#include "harness/figure/report.h"
#include "commands.h"
#include "harness/figure/plot_run.h"

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

/* --out, or report.html in the folder of the last run, which is replaced as its figures are. */
static enum status choose_file(char path[FILE_PATH], const struct options *o, const char *dir,
                               struct err *e)
{
    struct stat s;

    if (!options_written(o, "out"))
        return file_join(path, dir, "report.html", e);
    const bool exists = stat(o->out, &s) == 0;
    if (exists && S_ISDIR(s.st_mode))
        return fail(e, E_IO, "%s is a folder  -> name a file, such as %s/report.html", o->out,
                    o->out);
    if (exists && !o->force)
        return fail(e, E_IO, "%s exists  -> overwrite it with --force", o->out);
    if (strlen(o->out) >= FILE_PATH)
        return file_fail(e, "write", o->out, ENAMETOOLONG);
    memcpy(path, o->out, strlen(o->out) + 1);
    return OK;
}

static enum status report_runs(struct report *r, struct plot_data *runs, const struct options *o,
                               const struct names *words, char path[FILE_PATH], struct err *e)
{
    TRY(plot_check_names(&o->figures, e));
    for (int i = 0; i < words->n; i++) {
        struct plot_data *const d = &runs[i];
        TRY(plot_read(d, words->v[i], e));
        r->runs++;
        if (!o->quiet)
            run_note_doubled(d->dir,
                             d->table[TABLE_LATENCY].doubled + d->table[TABLE_PERPLEXITY].doubled);
        TRY(plot_set_base(d, o->base, e));
    }
    TRY(choose_file(path, o, runs[words->n - 1].dir, e));
    TRY(write_page(r, path, e));
    for (int i = 0; i < r->runs && !o->quiet; i++) {
        if (r->runs > 1)
            text_heading(stderr, runs[i].dir);
        plot_run_rank(&runs[i], terminal_color((enum color)o->color, STDERR_FILENO));
    }
    return OK;
}

enum status cmd_report(struct options *opt, int *code, struct err *e)
{
    char latest[FILE_PATH], path[FILE_PATH];
    const char *usual = latest;
    const struct names words = opt->words.n > 0 ? opt->words : (struct names){&usual, 1};
    struct plot_data *const runs = need_room((size_t)words.n, sizeof(*runs));
    struct report r = {
        .run = runs,
        .figures = &opt->figures,
    };
    enum status st =
        file_join(latest, options_written(opt, "out") ? "results" : opt->out, "latest", e);

    if (st == OK)
        st = report_runs(&r, runs, opt, &words, path, e);
    for (int i = 0; i < r.runs; i++)
        plot_data_free(&runs[i]);
    free(runs);
    TRY(st);
    if (r.warnings > 0)
        text_line(stderr, "warning: %d figure%s missing: %s", r.warnings,
                  r.warnings == 1 ? " is" : "s are", r.why.msg);
    printf("%s\n", path);
    *code = opt->strict && r.warnings > 0 ? EXIT_NOT_TRUSTWORTHY : EXIT_FINE;
    return OK;
}

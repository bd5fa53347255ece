/* SPDX-License-Identifier: MIT
 *
 * bench plot, and bench history: the figures of runs, as files or in the terminal. stdout lists the
 * files written; stderr says what was left out and why. */
#include "commands.h"
#include "harness/cli/option_set.h"
#include "harness/figure/plot_run.h"
#include "harness/util/signals.h"

#include <dirent.h>
#include <libgen.h>
#include <sys/ioctl.h>

enum target { AS_SVG, AS_PNG, AS_PDF, AS_CSV, ON_TERMINAL, AS_TEXT };
static const char *const ending[] = {"svg", "png", "pdf", "csv"};
static const enum plot_form form_of[] = {
    [AS_SVG] = PLOT_SVG, [AS_PNG] = PLOT_PNG, [AS_PDF] = PLOT_PDF, [ON_TERMINAL] = PLOT_TERMINAL};

enum { SIDE_MIN = 200, SIDE_MAX = 8000 };

struct drawing {
    const struct options *opt;
    enum target target;
    struct plot_page page;
    int width;                /* of the terminal */
    bool ours;                /* the folder is the run's own plots/: files there are replaced */
    const volatile int *stop; /* raised by Ctrl-C: the next figure is not begun */
    int drawn;
    int slower;        /* cases, by their last step */
    struct err *e;     /* of the command */
    struct err misfit; /* of the last figure that is larger than --size */
};

static int drawing_width(void)
{
    struct winsize w;
    const char *const columns = getenv("COLUMNS");

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0)
        return clamp_int(w.ws_col, 40, 400);
    return columns ? clamp_int(atoi(columns), 40, 400) : 80;
}

static enum status keep(struct drawing *g, const char *dir, const char *name,
                        const struct bytes *bytes)
{
    char file[96], path[FILE_PATH];

    snprintf(file, sizeof(file), "%s.%s", name, ending[g->target]);
    TRY(file_join(path, dir, file, g->e));
    TRY(file_make_folder(dir, g->e));
    if (!g->ours && !g->opt->force && access(path, F_OK) == 0)
        return fail(g->e, E_IO,
                    "%s exists  -> overwrite it with --force, or write elsewhere with -o DIR",
                    path);
    TRY(file_replace(path, bytes->data, bytes->n, g->e));
    printf("%s\n", path);
    return OK;
}

static enum status as_csv(struct bytes *out, const struct plot *p, struct err *e)
{
    FILE *const f = bytes_open(out, e);

    if (!f)
        return E_NOMEM;
    plot_print_csv(f, p);
    return bytes_close(f, out, e);
}

static enum status draw_figure(struct drawing *g, const struct plot_data *d, const char *dir,
                               const struct figure *f)
{
    struct plot p;
    struct bytes bytes = {0};
    enum status st = plot_make(&p, f, d, g->e);

    if (st != OK)
        return st;
    const bool asked = g->opt->figures.n > 0 || d->n_runs > 1; /* of a history there is one */
    if (p.why[0] && (p.n == 0 ? asked : !g->opt->quiet))
        text_line(stderr, "%s %s: %s", p.n == 0 ? "left out" : "note:", f->name, p.why);
    if (p.n == 0)
        goto out;
    p.page = g->page;
    st = g->target == AS_CSV ? as_csv(&bytes, &p, g->e)
                             : plot_draw(&bytes, &p, form_of[g->target], g->width, g->e);
    if (st == E_USAGE) { /* the others may fit */
        g->misfit = *g->e;
        fprintf(stderr, "left out %s: %s\n", f->name, g->e->msg);
        st = OK;
        goto out;
    }
    if (st == OK && g->target == ON_TERMINAL)
        fputs(bytes.data + strspn(bytes.data, "\f"), stdout); /* without a form feed */
    else if (st == OK)
        st = keep(g, dir, f->name, &bytes);
    g->drawn += st == OK;
out:
    free(bytes.data);
    plot_free(&p);
    return st;
}

/* RUN/plots, or -o DIR, or DIR/name of the run if there are several. */
static enum status folder_of(char dir[FILE_PATH], struct drawing *g, const char *run, int runs)
{
    const bool given = options_written(g->opt, "out");
    char *const real = realpath(run, NULL);
    enum status st;

    g->ours = !given;
    if (!real)
        return file_fail(g->e, "read", run, errno);
    if (!given) {
        st = file_join(dir, run, "plots", g->e);
    } else if (runs == 1) {
        st = snprintf(dir, FILE_PATH, "%s", g->opt->out) < FILE_PATH
                 ? OK
                 : file_fail(g->e, "write", g->opt->out, ENAMETOOLONG);
    } else {
        st = file_make_folder(g->opt->out, g->e);
        if (st == OK)
            st = file_join(dir, g->opt->out, basename(real), g->e);
    }
    free(real);
    return st;
}

/* The rows that the options choose. */
static enum status choose_rows(struct drawing *g, struct plot_data *d)
{
    TRY(plot_filter(d, &g->opt->filters, g->e));
    return plot_set_base(d, g->opt->base, g->e);
}

static enum status draw_figures(struct drawing *g, struct plot_data *d, int runs)
{
    char dir[FILE_PATH];

    TRY(choose_rows(g, d));
    TRY(folder_of(dir, g, d->dir, runs));
    for (int i = 0; i < figure_count; i++) {
        const enum status st = plot_is_wanted(&figures[i], &g->opt->figures)
                                   ? draw_figure(g, d, dir, &figures[i])
                                   : OK;
        if (*g->stop)
            return fail(g->e, E_INTERRUPTED, "interrupted");
        TRY(st);
    }
    return OK;
}

static enum status draw_run(struct drawing *g, const char *run, int runs)
{
    struct plot_data d;

    TRY(plot_read(&d, run, g->e));
    if (!g->opt->quiet)
        run_note_doubled(d.dir, d.table[TABLE_LATENCY].doubled + d.table[TABLE_PERPLEXITY].doubled);
    const enum status st = draw_figures(g, &d, runs);
    plot_data_free(&d);
    return st;
}

/* With --quiet only their number counts. */
static void tell_steps(struct drawing *g, const struct plot_data *d)
{
    struct bytes text;
    FILE *const f = bytes_begin(&text);

    g->slower = history_steps(f, d);
    bytes_end(f, &text);
    if (!g->opt->quiet)
        fwrite(text.data, 1, text.n, stderr);
    free(text.data);
}

static enum status draw_runs(struct drawing *g, const char *const *run, int n,
                             struct plot_data *runs)
{
    struct plot_data d = {.runs = runs, .n_runs = n};
    char dir[FILE_PATH];

    if (n < 2)
        return fail(g->e, E_USAGE, "a history needs two runs  -> bench history RUN RUN");
    for (int i = 0; i < n; i++) {
        TRY(plot_read(&runs[i], run[i], g->e));
        TRY(choose_rows(g, &runs[i]));
    }
    if (g->target == AS_TEXT) {
        TRY(history_table(stdout, &d, (enum format)g->opt->format, g->e));
        g->drawn++;
    } else {
        TRY(folder_of(dir, g, run[n - 1], 1));
        TRY(draw_figure(g, &d, dir, plot_figure("history")));
    }
    if (!g->opt->quiet || g->opt->strict)
        tell_steps(g, &d);
    return OK;
}

/* All runs in one figure, in the last one's folder. */
static enum status draw_history(struct drawing *g, const char *const *run, int n)
{
    struct plot_data *const runs = need_room((size_t)n + 1, sizeof(*runs));

    const enum status st = draw_runs(g, run, n, runs);
    for (int i = 0; i < n; i++)
        plot_data_free(&runs[i]);
    free(runs);
    return st;
}

/* With several runs, -o DIR has a folder for each, named by the last part of its path: equal names
 * would overwrite each other, or stop half way. */
static enum status check_folders(struct drawing *g)
{
    const struct names *const runs = &g->opt->words;
    const bool given = options_written(g->opt, "out");
    char **const real = need_room((size_t)runs->n + 1, sizeof(*real));
    enum status st = OK;

    for (int i = 0; i < runs->n && given && g->target != ON_TERMINAL && st == OK; i++) {
        real[i] = realpath(runs->v[i], NULL);
        if (!real[i])
            st = file_fail(g->e, "read", runs->v[i], errno);
        for (int k = 0; k < i && st == OK; k++)
            if (strcmp(basename(real[k]), basename(real[i])) == 0)
                st = fail(g->e, E_USAGE,
                          "%.200s and %.200s would both write to %.100s/%.100s  -> draw them one "
                          "by one, each with its own -o",
                          runs->v[k], runs->v[i], g->opt->out, basename(real[i]));
    }
    for (int i = 0; i < runs->n; i++)
        free(real[i]);
    free(real);
    return st;
}

/* --size and --dpi, where what is drawn has them. */
static enum status choose_page(struct drawing *g)
{
    const struct options *const o = g->opt;
    int used = 0;

    if (options_written(o, "dpi") && g->target != AS_PNG)
        return fail(g->e, E_USAGE, "--dpi applies to png only  -> add --format png");
    g->page.dpi = o->dpi;
    if (!o->size)
        return OK;
    if (g->target == ON_TERMINAL || g->target == AS_TEXT || g->target == AS_CSV)
        return fail(g->e, E_USAGE,
                    "--size applies to pictures only  -> use --format svg, png or pdf");
    if (sscanf(o->size, "%5dx%5d%n", &g->page.width, &g->page.height, &used) != 2 ||
        o->size[used] || g->page.width < SIDE_MIN || g->page.width > SIDE_MAX ||
        g->page.height < SIDE_MIN || g->page.height > SIDE_MAX)
        return fail(g->e, E_USAGE,
                    "--size %.40s is not a size  -> write WxH, each %d to %d, such as 700x400",
                    o->size, SIDE_MIN, SIDE_MAX);
    if (max_int(g->page.width, g->page.height) * o->dpi > SIDE_MAX * 4 * 96)
        return fail(g->e, E_USAGE,
                    "--size %s with --dpi %d is over %d pixels wide  -> lower one of them", o->size,
                    o->dpi, SIDE_MAX * 4);
    return OK;
}

static enum status choose_target(struct drawing *g)
{
    const struct options *const o = g->opt;

    const bool table = o->format == FORMAT_TABLE || format_is_pasted((enum format)o->format);
    const bool history = strcmp(o->command, command_specs[CMD_HISTORY].name) == 0;

    g->target = o->term                    ? ON_TERMINAL
                : table && history         ? AS_TEXT
                : o->format == FORMAT_AUTO ? AS_SVG
                : o->format == FORMAT_SVG  ? AS_SVG
                : o->format == FORMAT_PNG  ? AS_PNG
                : o->format == FORMAT_PDF  ? AS_PDF
                                           : AS_CSV;
    if (o->format != FORMAT_AUTO && o->format != FORMAT_CSV && o->format < FORMAT_SVG &&
        g->target != AS_TEXT)
        return fail(g->e, E_USAGE, "bench %s has no --format %s  -> use svg, png, pdf%s or csv",
                    o->command, format_name[o->format], history ? ", table, md, tex" : "");
    if (o->term && o->format != FORMAT_AUTO)
        return fail(g->e, E_USAGE, "--term draws no file  -> leave out --format");
    return choose_page(g);
}

/* Once everything was drawn. */
static enum status finish(const struct drawing *g, int *code)
{
    if (g->drawn > 0)
        return OK;
    if (g->misfit.msg[0]) {
        *g->e = g->misfit;
        return E_USAGE;
    }
    *code = EXIT_NOTHING_TO_DO;
    if (g->opt->figures.n == 0)
        text_line(stderr, "no figure has what it needs in this run  -> name one with --figure, to "
                          "see what that lacks");
    return OK;
}

/* Where runs are looked for: not in -o, which is where figures go. */
static const char *results_of(const struct options *o)
{
    return options_written(o, "out") ? "results" : o->out;
}

static enum status plot(struct drawing *g)
{
    const struct options *const o = g->opt;
    char latest[FILE_PATH];

    TRY(choose_target(g));
    TRY(plot_check_names(&o->figures, g->e));
    TRY(check_folders(g));
    for (int i = 0; i < o->words.n; i++)
        TRY(draw_run(g, o->words.v[i], o->words.n));
    if (o->words.n > 0)
        return OK;
    TRY(file_join(latest, results_of(o), "latest", g->e));
    if (access(latest, F_OK) != 0)
        return fail(g->e, E_IO, "there is no run %s  -> bench plot RUN", latest);
    return draw_run(g, latest, 1);
}

enum status cmd_plot(struct options *opt, int *code, struct err *e)
{
    struct drawing g = {.opt = opt, .width = drawing_width(), .stop = signals_watch(), .e = e};

    TRY(plot(&g));
    return finish(&g, code);
}

/* ---- bench history ------------------------------------------------------------------------- */

/* The runs of a folder, by name: the link to the latest is not another one. */
static enum status list_runs(struct names *runs, const char *dir, struct err *e)
{
    struct dirent **entries = NULL;
    const int n = scandir(dir, &entries, NULL, alphasort);

    if (n < 0)
        return file_fail(e, "read", dir, errno);
    for (int i = 0; i < n; i++) {
        char run[FILE_PATH], table[FILE_PATH];
        struct stat is;
        if (entries[i]->d_name[0] != '.' && file_join(run, dir, entries[i]->d_name, NULL) == OK &&
            file_join(table, run, tables[TABLE_LATENCY].file, NULL) == OK && lstat(run, &is) == 0 &&
            S_ISDIR(is.st_mode) && access(table, F_OK) == 0) {
            GROW_SMALL(runs->v, runs->n);
            runs->v[runs->n++] = need_text("%s", run);
        }
        free(entries[i]);
    }
    free(entries);
    return OK;
}

enum status cmd_history(struct options *opt, int *code, struct err *e)
{
    struct drawing g = {.opt = opt, .width = drawing_width(), .stop = signals_watch(), .e = e};
    struct names found = {0};
    enum status st = choose_target(&g);

    if (st == OK && opt->words.n == 0)
        st = list_runs(&found, results_of(opt), e);
    const struct names *const runs = opt->words.n > 0 ? &opt->words : &found;
    if (st == OK)
        st = draw_history(&g, runs->v, runs->n);
    for (int i = 0; i < found.n; i++)
        free((char *)found.v[i]); /* our own copies */
    free(found.v);
    TRY(st);
    if (g.drawn > 0 && opt->strict && g.slower > 0)
        *code = EXIT_REGRESSION;
    return finish(&g, code);
}

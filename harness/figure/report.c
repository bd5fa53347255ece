/* SPDX-License-Identifier: MIT
 *
 * The report: fills in plots/report.html, whose parts are repeated for each run, figure and table.
 * Everything from a table is escaped or encoded. */
#include "report.h"

#include "form.h"
#include "report_csv.h"

static const char FORM[] = "plots/report.html";

enum { WHY = sizeof(((struct err *)0)->msg) };

struct page {
    FILE *f;
    struct report *r;
    enum status st; /* the first error stops the rest */
    struct err *e;
    const struct plot_data *run; /* the current run, and the items of its parts */
    int n_run, n_figure, n_missing, n_file;
    bool command, unsampled, judged, history, first;
    struct plot_data all;         /* the runs together: of the history */
    char no_samples[WHY];         /* why the run's samples could not be read, or "" */
    struct bytes ranking, answer; /* of the run: as CSV; in sentences, one a line */
    struct plot plot;
    struct bytes svg;
    char (*why)[WHY]; /* [figure_count]: why it is not shown, or "" */
};

/* ---- text --------------------------------------------------------------------------------- */

/* For content, and for attributes in double quotes. */
static void print_text(FILE *f, const char *text)
{
    for (; *text; text++)
        if (strchr("&<>\"'", *text))
            fprintf(f, "&#%d;", *text);
        else
            fputc(*text, f);
}

/* Bytes that may stand unescaped in a data: address, in an attribute too. */
static bool is_plain(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c && strchr("-_.~,:/+=;()", c));
}

static void print_csv_address(FILE *f, const struct bytes *csv)
{
    fputs("data:text/csv;charset=utf-8,", f);
    for (size_t i = 0; i < csv->n; i++)
        if (is_plain(csv->data[i]))
            fputc(csv->data[i], f);
        else
            fprintf(f, "%%%02X", (unsigned char)csv->data[i]);
}

/* gnuplot's SVG as a part of a page: without prolog and hover texts, and with unique ids, because
 * all figures share one page. */
static void print_svg(FILE *f, const char *svg, const char *title, int number)
{
    static const char *const ids[] = {"id='", "id=\"", "href='#", "href=\"#", "url(#"};
    const char *s = strstr(svg, "<svg");

    if (!s)
        return;
    fputs("<svg role=\"img\" aria-label=\"", f);
    print_text(f, title);
    fputs("\"", f);
    for (s += strlen("<svg"); *s; s++) {
        const char *const end = text_begins(s, "<title>") ? strstr(s, "</title>") : NULL;
        if (end) {
            s = end + strlen("</title>") - 1;
            continue;
        }
        fputc(*s, f);
        for (size_t i = 0; i < ARRAY_LEN(ids); i++)
            if (text_begins(s, ids[i])) {
                fprintf(f, "%sf%d-", ids[i] + 1, number);
                s += strlen(ids[i]) - 1;
                break;
            }
    }
}

/* ---- values ------------------------------------------------------------------------------- */

static void put_file(struct page *p, const char *path)
{
    struct bytes file = {0};

    p->st = file_read(&file, path, p->e);
    if (p->st == OK)
        fwrite(file.data, 1, file.n, p->f);
    free(file.data);
}

static void find_own(struct page *p, char path[FILE_PATH], const char *name)
{
    if (!options_locate_own(path, FILE_PATH, name))
        p->st = fail(p->e, E_IO,
                     "cannot find %s above the program  -> run bench from its repository", name);
}

static void put_own(struct page *p, const char *name)
{
    char path[FILE_PATH];

    find_own(p, path, name);
    if (p->st == OK)
        put_file(p, path);
}

static void put_style(struct page *p) { put_own(p, "plots/report.css"); }

/* One script: a part may use those before it. */
static void put_script(struct page *p)
{
    static const char *const scripts[] = {"plots/report-data.js",  "plots/report-answer.js",
                                          "plots/report-chart.js", "plots/report-explore.js",
                                          "plots/report-rows.js",  "plots/report.js"};

    for (size_t i = 0; i < ARRAY_LEN(scripts) && p->st == OK; i++)
        put_own(p, scripts[i]);
}

/* The run's own name, else that of its folder. */
static void put_name(struct page *p, const struct plot_data *d)
{
    const struct env_row *const env = plot_env(d);
    char dir[FILE_PATH];
    size_t n = strlen(strcpy(dir, d->dir)); /* NOLINT: both of FILE_PATH */

    while (n > 1 && dir[n - 1] == '/')
        dir[--n] = '\0';
    print_text(p->f, env && env->run_id[0] ? env->run_id : path_name(dir));
}

static void put_title(struct page *p) { put_name(p, p->r->run); }
static void put_run(struct page *p) { put_name(p, p->run); }
static void put_argv(struct page *p) { print_text(p->f, plot_env(p->run)->argv); }

static const struct figure *figure_of(const struct page *p)
{
    return &figures[p->n_missing >= 0 ? p->n_missing : p->n_figure];
}

static int figure_number(const struct page *p)
{
    return (p->n_run + 1) * figure_count + p->n_figure;
}

static void put_number(struct page *p)
{
    fprintf(p->f, "%d-%s", figure_number(p), figure_of(p)->name);
}

static void put_figure(struct page *p) { print_text(p->f, figure_of(p)->name); }
static void put_heading(struct page *p) { print_text(p->f, figure_of(p)->title); }
static void put_caption(struct page *p) { print_text(p->f, figure_of(p)->caption); }
static void put_why(struct page *p) { print_text(p->f, p->why[p->n_missing]); }

static void put_note(struct page *p)
{
    fputs(p->plot.why[0] ? "Note: " : "", p->f);
    print_text(p->f, p->plot.why);
    fputs(p->plot.why[0] ? "." : "", p->f);
}

static void put_svg(struct page *p)
{
    print_svg(p->f, p->svg.data, figure_of(p)->title, figure_number(p));
}

/* CSV that a function prints, as an address. */
static void put_csv(struct page *p, void (*print)(FILE *f, const struct page *p))
{
    struct bytes csv;
    FILE *const f = bytes_begin(&csv);

    print(f, p);
    bytes_end(f, &csv);
    print_csv_address(p->f, &csv);
    free(csv.data);
}

static void points_csv(FILE *f, const struct page *p) { plot_print_csv(f, &p->plot); }
static void put_numbers(struct page *p) { put_csv(p, points_csv); }

static void columns_csv(FILE *f, const struct page *p) { report_print_columns(f); }
static void put_columns(struct page *p) { put_csv(p, columns_csv); }

static void styles_csv(FILE *f, const struct page *p) { report_print_styles(f); }
static void put_styles(struct page *p) { put_csv(p, styles_csv); }

static const struct plot_file *file_of(const struct page *p) { return &p->run->file[p->n_file]; }

static void put_table(struct page *p)
{
    fputs(file_of(p)->table ? file_of(p)->table->name : "changes", p->f);
}

static void put_file_name(struct page *p) { print_text(p->f, file_of(p)->name); }

static void rows_csv(FILE *f, const struct page *p) { report_print_rows(f, p->run, file_of(p)); }

static void put_rows(struct page *p)
{
    char path[FILE_PATH];
    struct bytes file = {0};

    if (file_of(p)->table) {
        put_csv(p, rows_csv);
        return;
    }
    p->st = file_join(path, p->run->dir, file_of(p)->name, p->e);
    if (p->st == OK)
        p->st = file_read(&file, path, p->e);
    if (p->st == OK)
        print_csv_address(p->f, &file);
    free(file.data);
}

static void verdicts_csv(FILE *f, const struct page *p) { report_judge(f, p->run); }
static void put_verdicts(struct page *p) { put_csv(p, verdicts_csv); }
static void scores_csv(FILE *f, const struct page *p) { report_print_scores(f, p->run); }
static void put_scores(struct page *p) { put_csv(p, scores_csv); }

static void put_ranking(struct page *p) { print_csv_address(p->f, &p->ranking); }
static void put_answer(struct page *p) { print_text(p->f, p->answer.data ? p->answer.data : ""); }
static void put_unsampled(struct page *p) { print_text(p->f, p->no_samples); }

static const struct {
    const char *name;
    void (*put)(struct page *p);
} values[] = {
    {"title", put_title},       {"style", put_style},
    {"script", put_script},     {"columns", put_columns},
    {"run", put_run},           {"argv", put_argv},
    {"number", put_number},     {"figure", put_figure},
    {"heading", put_heading},   {"caption", put_caption},
    {"note", put_note},         {"svg", put_svg},
    {"numbers", put_numbers},   {"why", put_why},
    {"table", put_table},       {"file", put_file_name},
    {"rows", put_rows},         {"styles", put_styles},
    {"ranking", put_ranking},   {"unsampled", put_unsampled},
    {"verdicts", put_verdicts}, {"answer", put_answer},
    {"scores", put_scores},
};

/* ---- parts -------------------------------------------------------------------------------- */

static void drop_figure(struct page *p)
{
    free(p->svg.data);
    p->svg = (struct bytes){0};
    plot_free(&p->plot);
}

/* Points of nothing but columns: the page's script draws them from the tables, with any axes. */
static bool is_drawn_by_the_page(const struct figure *f)
{
    return !f->point && !f->more && !f->fill;
}

/* Make and draw the current figure. If that fails, p->why says why. */
static void draw(struct page *p)
{
    char *const why = p->why[p->n_figure];

    p->st = plot_make(&p->plot, &figures[p->n_figure], p->run, p->e);
    if (p->st != OK)
        return;
    if (p->plot.n == 0)
        text_put(why, sizeof(*p->why), p->plot.why);
    else
        p->st = plot_draw(&p->svg, &p->plot, PLOT_SVG, 0, p->e);
    if (p->st != OK && p->st != E_INTERRUPTED && p->st != E_NOMEM) {
        /* the rest of the page is still useful */
        text_put(why, sizeof(*p->why), p->e->msg);
        if (p->r->warnings++ == 0)
            p->r->why = *p->e;
        p->st = OK;
    }
}

/* Did the figure become a picture? */
static bool draw_figure(struct page *p, int figure)
{
    p->n_figure = figure;
    draw(p);
    return p->st == OK && !p->why[figure][0];
}

/* Each goes to the next item of its part; false after the last. */

/* Of a part with one item at most. */
static bool first_time(bool *been)
{
    const bool first = !*been;

    *been = true;
    return first;
}

/* One figure of all runs, if there are several. */
static bool next_history(struct page *p)
{
    const struct figure *const f = plot_figure("history");

    if (!first_time(&p->history) || p->r->runs < 2 ||
        (p->r->figures->n > 0 && !plot_is_wanted(f, p->r->figures)))
        return false;
    p->all = (struct plot_data){.runs = p->r->run, .n_runs = p->r->runs};
    p->run = &p->all;
    return draw_figure(p, (int)(f - figures));
}

/* The picture of a choice stands on top where there is one run. */
static bool is_first(const struct page *p, const struct figure *f)
{
    return p->r->runs == 1 && f == plot_figure("variants");
}

static bool next_first(struct page *p)
{
    const struct figure *const f = plot_figure("variants");

    if (!first_time(&p->first) || !is_first(p, f) || !plot_is_wanted(f, p->r->figures))
        return false;
    p->run = p->r->run;
    return draw_figure(p, (int)(f - figures));
}

static bool next_run(struct page *p)
{
    char first[WHY];

    text_put(first, sizeof(first), p->why[plot_figure("variants") - figures]);
    p->n_figure = p->n_missing = p->n_file = -1;
    p->command = p->unsampled = p->judged = false;
    memset(p->why, 0, (size_t)figure_count * sizeof(*p->why));
    if (p->n_run < 0)
        text_put(p->why[plot_figure("variants") - figures], WHY, first);
    p->run = &p->r->run[++p->n_run];
    if (p->n_run == p->r->runs)
        return false;
    free(p->ranking.data);
    free(p->answer.data);
    p->ranking = p->answer = (struct bytes){0};
    FILE *const ranking = bytes_begin(&p->ranking), *const answer = bytes_begin(&p->answer);
    report_rank(ranking, answer, p->no_samples, sizeof(p->no_samples), p->run);
    bytes_end(ranking, &p->ranking);
    bytes_end(answer, &p->answer);
    return true;
}

static bool next_command(struct page *p)
{
    return first_time(&p->command) && plot_env(p->run) && plot_env(p->run)->argv[0];
}

static bool next_unsampled(struct page *p) { return first_time(&p->unsampled) && p->no_samples[0]; }

/* Is it a study? */
static bool next_judged(struct page *p)
{
    return first_time(&p->judged) && p->run->table[TABLE_STUDY].n > 0;
}

static bool next_of(struct page *p, bool folded)
{
    while (p->st == OK && ++p->n_figure < figure_count) {
        drop_figure(p);
        const struct figure *const f = &figures[p->n_figure];
        if (f->folded != folded || is_first(p, f) || is_drawn_by_the_page(f) ||
            !plot_is_wanted(f, p->r->figures))
            continue;
        if (draw_figure(p, p->n_figure))
            return true;
    }
    p->n_figure = -1;
    return false;
}

static bool next_figure(struct page *p) { return next_of(p, false); }
static bool next_folded(struct page *p) { return next_of(p, true); }

static bool next_missing(struct page *p)
{
    while (++p->n_missing < figure_count)
        if (p->why[p->n_missing][0])
            return true;
    return false;
}

static bool next_table(struct page *p) { return ++p->n_file < p->run->n_files; }

static const struct {
    const char *name;
    bool (*next)(struct page *p);
} parts[] = {
    {"run", next_run},         {"command", next_command}, {"figure", next_figure},
    {"missing", next_missing}, {"table", next_table},     {"unsampled", next_unsampled},
    {"history", next_history}, {"judged", next_judged},   {"first", next_first},
    {"folded", next_folded},
};

/* ---- the page ----------------------------------------------------------------------------- */

static enum status put_value(void *arg, const char *name, bool *known)
{
    struct page *const p = arg;

    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        if (strcmp(values[i].name, name) == 0) {
            values[i].put(p);
            return p->st;
        }
    *known = false;
    return OK;
}

static enum status next_item(void *arg, const char *name, bool *more, bool *known)
{
    struct page *const p = arg;

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (strcmp(parts[i].name, name) == 0) {
            *more = parts[i].next(p);
            return p->st;
        }
    *known = false;
    return OK;
}

enum status report_write(FILE *f, struct report *r, struct err *e)
{
    struct page p = {.f = f, .r = r, .e = e, .n_run = -1, .n_missing = -1};
    const struct form form = {f, FORM, &p, put_value, next_item};
    struct bytes text = {0};
    char path[FILE_PATH];

    p.why = need_room((size_t)figure_count, sizeof(*p.why));
    find_own(&p, path, FORM);
    if (p.st == OK)
        p.st = file_read(&text, path, e);
    if (p.st == OK)
        p.st = form_fill(&form, text.data, e);
    drop_figure(&p);
    free(p.ranking.data);
    free(p.answer.data);
    free(p.why);
    free(text.data);
    return p.st;
}

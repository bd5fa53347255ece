/* SPDX-License-Identifier: MIT
 *
 * The figure variants: one shape and its variants, each on its fastest backend, in order of time. What
 * stands in it, and what is told apart, the rankings decide (measure/ranking.h): a bar is CPU time
 * where they compare that, and its interval is then that of the ratio to the first. */

#include "harness/measure/ranking.h"
#include "plot_run.h"

enum { PANELS_MAX = 6, BARS_ABREAST = 24 };

/* What a bar says of the first, in the order of the legend. */
enum { FASTEST, NOT_SHOWN, PROBABLY, SLOWER };
static const char *const said[] = {
    [FASTEST] = "fastest",
    [NOT_SHOWN] = "no difference from it shown",
    [PROBABLY] = "probably slower",
    [SLOWER] = "slower",
};

static int bar_kind(const struct ranking *r, int i, int shape)
{
    const enum verdict v = r->v[i].place[shape].change.verdict;

    return i == r->leader[shape]          ? FASTEST
           : v == VERDICT_SLOWER          ? SLOWER
           : v == VERDICT_PROBABLY_SLOWER ? PROBABLY
                                          : NOT_SHOWN;
}

static bool by_cpu(const struct ranking *r, int shape)
{
    for (int i = 0; i < r->n; i++)
        if (r->v[i].place[shape].row && change_by_cpu(&r->v[i].place[shape].change))
            return true;
    return false;
}

static int by_time(const void *a, const void *b)
{
    const struct plot_point *const p = a, *const q = b;
    return (p->y > q->y) - (p->y < q->y);
}

/* The bar of contestant i. */
static void add_bar(struct plot *p, const struct ranking *r, int i, int shape, int panel,
                    bool name_backend)
{
    const struct place *const at = &r->v[i].place[shape];
    const struct latency_row *const row = at->row;
    const double first = r->v[r->leader[shape]].place[shape].row->cpu_time_median_ns;
    const int kind = bar_kind(r, i, shape);
    struct plot_point a = plot_point_empty();

    a.row = panel;
    a.source = row;
    plot_time(&a, row);
    if (by_cpu(r, shape)) {
        a.y =
            kind == FASTEST ? first : first * exp(at->change.log.mid); /* as the ranking says it */
        a.low = kind == FASTEST ? NAN : first * exp(at->change.log.low);
        a.high = kind == FASTEST ? NAN : first * exp(at->change.log.high);
    }
    snprintf(a.label, PLOT_TEXT, "%.100s%s%.60s", r->v[i].name, name_backend ? " " : "",
             name_backend ? row->backend : "");
    a.series = plot_name(&p->series, said[kind], kind);
    if (a.y > 0)
        plot_add(p, &a);
}

/* Does a bar stand on another backend than the first one of the panel? */
static bool backends_differ(const struct ranking *r, int shape)
{
    const char *const first = r->v[r->leader[shape]].place[shape].row->backend;
    bool differ = false;

    for (int i = 0; i < r->n; i++) {
        const struct latency_row *const row = r->v[i].place[shape].row;
        differ = differ || (row && strcmp(row->backend, first) != 0);
    }
    return differ;
}

static int name_panel(struct plot *p, const struct picked *k, const struct ranking *r, int shape)
{
    const struct latency_row *const row = r->v[r->leader[shape]].place[shape].row;
    char text[PLOT_TEXT] = "", title[2 * PLOT_TEXT];

    for (int i = 0; i < k->n; i++)
        if (k->row[i] == row)
            plot_label(text, k, i, ROLE_TASK | ROLE_SIZE | ROLE_CONDITION, NULL, false);
    snprintf(title, sizeof(title), "%s%s", text, by_cpu(r, shape) ? " (CPU time)" : "");
    return plot_name(&p->rows, title, 0);
}

/* The bars of a shape that two variants or more have run. */
static void add_shape(struct plot *p, const struct picked *k, const struct ranking *r, int shape)
{
    const bool name_backend = backends_differ(r, shape);
    const int before = p->n;
    int bars = 0;

    for (int i = 0; i < r->n; i++)
        bars += r->v[i].place[shape].row != NULL;
    if (bars < 2)
        return;
    const int panel = name_panel(p, k, r, shape);
    for (int i = 0; i < r->n; i++)
        if (r->v[i].place[shape].row)
            add_bar(p, r, i, shape, panel, name_backend);
    if (p->n > before)
        qsort(p->point + before, (size_t)(p->n - before), sizeof(*p->point), by_time);
    for (int i = before; i < p->n; i++)
        p->point[i].x = i - before;
}

static int most_bars(const struct plot *p)
{
    double most = 0;

    for (int i = 0; i < p->n; i++)
        most = fmax(most, p->point[i].x + 1);
    return (int)most;
}

void variant_bars(struct plot *p, const struct plot_data *d)
{
    const struct picked k = plot_pick(d, TABLE_LATENCY, plot_has_time, NULL);
    struct plot_run run;
    int shapes = 0;

    plot_run_open(&run, d);
    plot_one_column(p);
    struct rankings all = rankings_make(&run.run, RANKED_VARIANTS);
    for (int i = 0; i < all.n; i++)
        shapes += all.v[i].shapes;
    for (int i = 0; i < all.n && shapes <= PANELS_MAX; i++)
        for (int s = 0; s < all.v[i].shapes; s++)
            add_shape(p, &k, &all.v[i], s);
    if (shapes > PANELS_MAX)
        snprintf(p->why, sizeof(p->why),
                 "latency.csv has %d shapes, %d have room  -> select shapes with --filter", shapes,
                 PANELS_MAX);
    plot_wrap(p, most_bars(p) <= BARS_ABREAST ? 2 : 1);
    rankings_free(&all);
    plot_run_close(&run);
    free(k.row);
}

/* SPDX-License-Identifier: MIT
 *
 * The samples of a case, in the order in which they were taken. */
#include "figure.h"

#include "harness/table/samples.h"

enum { KIND_SAMPLE, KIND_PREEMPTED, KIND_MEDIAN, PANELS_MAX = 12, PANELS_ABREAST = 3 };

static double spread(const struct latency_row *r)
{
    const double width = (r->ci95_high_ns - r->ci95_low_ns) / r->median_ns;
    return isfinite(width) ? width : 0;
}

/* The least certain first. */
static int by_spread(const void *a, const void *b)
{
    const struct latency_row *const x = *(const void *const *)a, *const y = *(const void *const *)b;
    const double p = spread(x), q = spread(y);

    return p != q ? (p < q) - (p > q) : (x > y) - (x < y);
}

static void add_point(struct plot *p, struct plot_point *a, int kind, double x, double y)
{
    a->kind = kind;
    a->x = x;
    a->y = y;
    plot_add(p, a);
}

/* A panel for the case, if it has samples. */
static void add_case(struct plot *p, const struct picked *k, int at, const struct rows *all)
{
    const struct latency_row *const row = k->row[at];
    const struct sample_row *const sample = all->row;
    struct plot_point a = plot_point_empty();
    int n = 0;

    a.source = row;
    for (size_t i = 0; i < all->n; i++) {
        const struct sample_row *const s = &sample[i];
        if (strcmp(s->case_id, row->case_id) != 0 || !(s->wall_ns > 0) || s->calls < 1)
            continue;
        if (n == 0) {
            a.row = plot_case_panel(p, k, at);
            a.series = plot_name(&p->series, row->variant, plot_variant_style(row->variant));
        }
        add_point(p, &a, s->disturbed == 1 ? KIND_PREEMPTED : KIND_SAMPLE, ++n,
                  s->wall_ns / (double)s->calls);
    }
    a.low = row->ci95_low_ns;
    a.high = row->ci95_high_ns;
    for (int end = 0; end < 2 && n > 0; end++)
        add_point(p, &a, KIND_MEDIAN, end ? n + 0.5 : 0.5, row->median_ns);
}

/* Some cases have no samples: continue until there are enough panels. */
void sample_strips(struct plot *p, const struct plot_data *d)
{
    const struct picked k = plot_pick(d, TABLE_LATENCY, plot_has_time, NULL);
    struct rows all = {0};
    struct err why;
    int at = 0;

    plot_one_column(p);
    if (k.n == 0)
        snprintf(p->why, sizeof(p->why), "latency.csv has no row with a time");
    else if (samples_read(&all, d->dir, &why) != OK)
        snprintf(p->why, sizeof(p->why), "%.*s", (int)sizeof(p->why) - 1, why.msg);
    if (k.n > PANELS_MAX)
        qsort(k.row, (size_t)k.n, sizeof(*k.row), by_spread);
    for (; at < k.n && p->rows.n < PANELS_MAX && all.n > 0; at++)
        add_case(p, &k, at, &all);
    if (at < k.n && p->n > 0)
        snprintf(p->why, sizeof(p->why),
                 "the %d cases with the widest intervals of %d are drawn  -> select others with "
                 "--filter",
                 p->rows.n, k.n);
    plot_wrap(p, PANELS_ABREAST);
    rows_free(&all);
    free(k.row);
}

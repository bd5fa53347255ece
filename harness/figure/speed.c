/* SPDX-License-Identifier: MIT
 *
 * The speed of evaluation: seconds per predicted token, and below them the slowdown of a sliding
 * window that is recomputed for each token. */
#include "figure.h"

enum { KIND_SECONDS, KIND_SLOWDOWN, KIND_ARITHMETIC, KIND_PUBLISHED };

/* Dai et al. 2019, "Transformer-XL", table 9: how much slower the sliding window was on a GPU. */
static const struct {
    int length;
    double slowdown;
} published[] = {{800, 363}, {1800, 773}, {2800, 1409}, {3800, 1874}};

static bool is_decode(const struct latency_row *r)
{
    return strcmp(r->workload, workload_name[WORK_DECODE]) == 0;
}

static bool is_window(const struct latency_row *r)
{
    return strcmp(r->mem_kind, mem_kind_name[MEM_RECOMPUTE]) == 0 && is_decode(r);
}

bool speed_point(struct plot_point *p, const void *row, const struct plot_data *d)
{
    const struct latency_row *const r = row;
    const bool model = is_decode(r) || strcmp(r->workload, workload_name[WORK_SEGMENT]) == 0;
    const double tokens = (double)r->seq_tokens * (double)r->batch_size;

    if (plot_is_reference(r->backend) || !model || r->seq_tokens <= 0 || r->batch_size <= 0 ||
        r->mem_tokens <= 0 || !(r->median_ns > 0))
        return false;
    p->y = r->median_ns * 1e-9 / tokens;
    p->low = r->ci95_low_ns * 1e-9 / tokens;
    p->high = r->ci95_high_ns * 1e-9 / tokens;
    p->z = r->flop_count / tokens; /* for the arithmetic below; not drawn itself */
    return true;
}

/* The models of one kind of rows: token by token, or in segments of a given length. */
void speed_name(char *buf, size_t size, const void *row)
{
    const struct latency_row *const r = row;

    if (is_window(r))
        snprintf(buf, size, "%s sliding window", r->variant);
    else if (is_decode(r))
        snprintf(buf, size, "%s %s, token by token", r->variant, r->mem_kind);
    else
        snprintf(buf, size, "%s %s, segments of %lld", r->variant, r->mem_kind,
                 (long long)r->seq_tokens);
}

/* The window of that variant that a point is compared with: the same backend, length and shape.
 * NULL if there is none, or several. */
static const struct plot_point *window_of(const struct plot *p, int n, const char *variant,
                                          const struct plot_point *a)
{
    const struct plot_point *found = NULL;

    for (int i = 0; i < n; i++) {
        const struct plot_point *const b = &p->point[i];
        const struct latency_row *const r = b->source;
        if (!is_window(r) || strcmp(r->variant, variant) != 0 || b->column != a->column ||
            b->x != a->x || !plot_same(r, a->source, ROLE_SIZE | ROLE_CONDITION))
            continue;
        if (found)
            return NULL;
        found = b;
    }
    return found;
}

/* A window has no slowdown itself. */
static void add_slowdown(struct plot *p, const char *variant)
{
    const int n = p->n;

    for (int i = 0; i < n; i++) {
        struct plot_point a = p->point[i];
        const struct plot_point *const w =
            is_window(a.source) ? NULL : window_of(p, n, variant, &a);
        if (!w)
            continue;
        const double slower[] = {w->y / a.y, w->z / a.z};
        a.row++;
        a.low = a.high = a.z = NAN;
        for (int k = 0; k < 2; k++) {
            a.kind = k ? KIND_ARITHMETIC : KIND_SLOWDOWN;
            a.y = slower[k];
            plot_add(p, &a);
        }
    }
}

static void add_published(struct plot *p)
{
    const int series = plot_name(&p->series, "published, one GPU", STYLE_FOREIGN);

    for (int c = 0; c < p->columns.n; c++)
        for (size_t i = 0; i < ARRAY_LEN(published); i++) {
            struct plot_point a = plot_point_empty();
            a.row = 1;
            a.column = c;
            a.series = series;
            a.kind = KIND_PUBLISHED;
            a.x = published[i].length;
            a.y = published[i].slowdown;
            plot_add(p, &a);
        }
}

void speed_slowdown(struct plot *p, const struct plot_data *d)
{
    const char *variant =
        NULL; /* the variant whose window the others are compared with: the first */
    bool others = false;

    for (int i = 0; i < p->n; i++) {
        const struct latency_row *const r = p->point[i].source;
        others = others || !is_window(r);
        if (is_window(r) && !variant)
            variant = r->variant;
    }
    if (!variant || !others) {
        p->n = 0;
        if (!p->why[0]) /* else: too few lengths */
            snprintf(p->why, sizeof(p->why), "%s", p->figure->nothing);
        return;
    }
    add_slowdown(p, variant);
    plot_name(&p->rows, "slowdown", 0);
    add_published(p);
}

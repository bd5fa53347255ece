/* SPDX-License-Identifier: MIT
 *
 * The roofline: rows by their arithmetic intensity, and the measured ceilings. */
#include "figure.h"

enum { KIND_POINT, KIND_FLOPS, KIND_BANDWIDTH, SERIES_IN_ONE = 16 };

static bool has_peaks(const struct plot_data *d)
{
    const struct env_row *const env = d->table[TABLE_ENV].row;
    return d->table[TABLE_ENV].n > 0 && env->peak_threads != I64_EMPTY;
}

bool roofline_point(struct plot_point *p, const void *row, const struct plot_data *d)
{
    const struct latency_row *const r = row;
    const struct env_row *const env = d->table[TABLE_ENV].row;

    if (!has_peaks(d) || !(r->flop_count > 0) || !(r->bytes_moved_min > 0) ||
        !(r->gflop_per_s > 0) || r->threads != env->peak_threads)
        return false;
    p->x = r->flop_count / r->bytes_moved_min;
    return true;
}

/* A ceiling as a series: flop/s do not depend on x; bytes/s times x do. */
static void add_ceiling(struct plot *p, const char *name, int kind, double peak, int order)
{
    struct plot_point point = plot_point_empty();
    char series[PLOT_TEXT];

    if (!(peak > 0))
        return;
    snprintf(series, sizeof(series), "peak %s", name); /* a backend may have the same name */
    point.kind = kind;
    point.y = peak * 1e-9;
    text_put(point.label, PLOT_TEXT, name);
    point.series = plot_name(&p->series, series, STYLE_FOREIGN + order);
    plot_add(p, &point);
}

/* Do many points of different backends lie on each other? */
static bool collide(const struct plot *p)
{
    enum { ONE_IN = 10 };
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    int hidden = 0;

    for (int i = 0; i < p->n; i++) {
        const double at[] = {log(p->point[i].x), log(p->point[i].y)};
        for (int k = 0; k < 2; k++) {
            low[k] = fmin(low[k], at[k]);
            high[k] = fmax(high[k], at[k]);
        }
    }
    const double near[] = {0.012 * (high[0] - low[0]), 0.025 * (high[1] - low[1])};
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < i; k++) {
            const struct plot_point *const a = &p->point[i], *const b = &p->point[k];
            if (a->column == b->column || fabs(log(a->x / b->x)) > near[0] ||
                fabs(log(a->y / b->y)) > near[1])
                continue;
            hidden++;
            break;
        }
    return hidden * ONE_IN > p->n;
}

static double ceiling_of(const struct plot_data *d, const char *column)
{
    return plot_number(&tables[TABLE_ENV], d->table[TABLE_ENV].row, column);
}

void roofline_ceilings(struct plot *p, const struct plot_data *d)
{
    const struct {
        const char *name, *column;
        int kind;
    } ceilings[] = {
        {"ref", "peak_flop_per_s_ref", KIND_FLOPS},
        {"avx2", "peak_flop_per_s_avx2", KIND_FLOPS},
        {"avx512", "peak_flop_per_s_avx512", KIND_FLOPS},
        {"avx512_bf16", "peak_flop_per_s_bf16", KIND_FLOPS},
        {"amx_bf16", "peak_flop_per_s_amx_bf16", KIND_FLOPS},
        {"neon", "peak_flop_per_s_neon", KIND_FLOPS},
        {"L1", "read_byte_per_s_l1", KIND_BANDWIDTH},
        {"L2", "read_byte_per_s_l2", KIND_BANDWIDTH},
        {"L3", "read_byte_per_s_l3", KIND_BANDWIDTH},
        {"DRAM", "read_byte_per_s_dram", KIND_BANDWIDTH},
    };

    if (!has_peaks(d)) {
        snprintf(p->why, sizeof(p->why), "env.csv has no measured peaks");
        return;
    }
    if (p->n == 0)
        plot_one_panel(p);
    else if (p->columns.n > 1 && p->series.n * p->columns.n <= SERIES_IN_ONE && !collide(p))
        plot_join_backends(p);
    p->abreast = 2;
    const double same = 0.05; /* as one line: the names would lie on each other */
    char names[TEXT_SIZE] = "";
    for (size_t i = 0; i < ARRAY_LEN(ceilings); i++) {
        const double peak = ceiling_of(d, ceilings[i].column);
        const bool joined = ceilings[i].kind == KIND_FLOPS && ceilings[i + 1].kind == KIND_FLOPS &&
                            fabs(ceiling_of(d, ceilings[i + 1].column) / peak - 1) < same;
        text_join(names, sizeof(names), " and ", ceilings[i].name);
        if (joined)
            continue;
        add_ceiling(p, names, ceilings[i].kind, peak, (int)i);
        names[0] = '\0';
    }
}

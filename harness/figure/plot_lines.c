/* SPDX-License-Identifier: MIT
 *
 * Figures that need more than one column of one table: the roofline with its measured ceilings, the
 * speed of evaluation, training curves, and changes with their intervals. */
#include "harness/measure/verdict.h"
#include "harness/plan/plan.h"
#include "plot.h"

#include <stdlib.h>
#include <string.h>

static bool is_ok(const char *status) { return strcmp(status, row_status_name[ROW_OK]) == 0; }

static const char *const all_rows[] = {NULL};

/* ---- roofline ----------------------------------------------------------------------------- */

enum { KIND_POINT, KIND_FLOPS, KIND_BANDWIDTH };

static bool on_roofline(struct plot_point *out, const void *row, const struct plot_data *d)
{
    const struct latency_row *const r = row;
    const struct env_row *const env = d->table[TABLE_ENV].row;

    if (!is_ok(r->status) || !(r->flop_count > 0) || !(r->bytes_moved_min > 0) ||
        !(r->gflop_per_s > 0) || r->threads != env->peak_threads)
        return false;
    out->x = r->flop_count / r->bytes_moved_min;
    out->y = r->gflop_per_s;
    return true;
}

/* A ceiling as a series: flop/s do not depend on x; bytes/s times x do. */
static enum status add_ceiling(struct plot *p, const char *name, int kind, double peak, int order,
                               struct err *e)
{
    struct plot_point point = plot_point_empty();

    if (!(peak > 0))
        return OK;
    point.kind = kind;
    point.y = peak * 1e-9;
    text_put(point.label, PLOT_TEXT, name);
    enum status st = plot_name(&point.series, &p->series, name, 1000 + order, e);
    return st == OK ? plot_add(p, &point, e) : st;
}

enum status plot_roofline(struct plot *p, const struct plot_data *d, struct err *e)
{
    static const struct plot_panels spec = {
        .table = TABLE_LATENCY,
        .rows = all_rows,
        .across = "backend",
        .point = on_roofline,
        .need = 1,
        .nothing = "latency.csv has no row with FLOP and bytes at the thread count of the peaks",
    };
    const struct env_row *const env = d->table[TABLE_ENV].row;

    if (d->table[TABLE_ENV].n == 0 || env->peak_threads == I64_EMPTY) {
        snprintf(p->why, sizeof(p->why), "env.csv has no measured peaks");
        return OK;
    }
    enum status st = plot_panels(p, d, &spec, e);
    const struct {
        const char *name;
        int kind;
        double peak;
    } ceilings[] = {
        {isa_name[0], KIND_FLOPS, env->peak_flop_per_s_ref},
        {isa_name[1], KIND_FLOPS, env->peak_flop_per_s_avx2},
        {isa_name[2], KIND_FLOPS, env->peak_flop_per_s_avx512},
        {"L1", KIND_BANDWIDTH, env->read_byte_per_s_l1},
        {"L2", KIND_BANDWIDTH, env->read_byte_per_s_l2},
        {"L3", KIND_BANDWIDTH, env->read_byte_per_s_l3},
        {"DRAM", KIND_BANDWIDTH, env->read_byte_per_s_dram},
    };
    if (st == OK && p->n == 0) { /* an empty panel */
        int none;
        st = plot_name(&none, &p->rows, "", 0, e);
        if (st == OK)
            st = plot_name(&none, &p->columns, "", 0, e);
    }
    p->abreast = 2;
    for (size_t i = 0; i < ARRAY_LEN(ceilings) && st == OK; i++)
        st = add_ceiling(p, ceilings[i].name, ceilings[i].kind, ceilings[i].peak, (int)i, e);
    return st;
}

/* ---- evaluation speed --------------------------------------------------------------------- */

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

static bool per_token(struct plot_point *out, const struct latency_row *r)
{
    const bool model = is_decode(r) || strcmp(r->workload, workload_name[WORK_SEGMENT]) == 0;
    const double tokens = (double)(r->seq_tokens * r->batch_size);

    if (!is_ok(r->status) || plot_is_reference(r->backend) || !model || r->mem_tokens <= 0 ||
        !(r->median_ns > 0))
        return false;
    out->x = (double)r->mem_tokens;
    out->y = r->median_ns * 1e-9 / tokens;
    out->low = r->ci95_low_ns * 1e-9 / tokens;
    out->high = r->ci95_high_ns * 1e-9 / tokens;
    out->z = r->flop_count / tokens; /* for the arithmetic below; not drawn itself */
    return true;
}

static const char *const speed_shape[] = {
    "batch_size", "layers", "d_model", "heads",   "d_head",     "d_inner",
    "threads",    "dtype",  "pin",     "membind", "cache_mode", NULL,
};
static const char *const speed_series[] = {
    "gate",   "norm_place", "clip",       "clamp_len", "same_length", "kv_heads", "ffn",
    "norm",   "mask",       "mask_heads", "rnn_cell",  "halt",        "settings", "batch_size",
    "layers", "d_model",    "heads",      "d_head",    "d_inner",     "threads",  "dtype",
    "pin",    "membind",    "cache_mode", NULL,
};

/* The window's point that row i is compared with: the same backend, length and shape. -1 where
 * there is none, or several. */
static int window_of(const struct plot *p, const struct latency_row *v, int n, const char *variant,
                     int i)
{
    int found = -1;

    for (int k = 0; k < n; k++)
        if (is_window(&v[k]) && strcmp(v[k].variant, variant) == 0 &&
            p->point[k].column == p->point[i].column && p->point[k].x == p->point[i].x &&
            plot_same(&v[k], &v[i], speed_shape)) {
            if (found >= 0)
                return -1;
            found = k;
        }
    return found;
}

/* v[i] is the row of point i. A window has no slowdown itself. */
static enum status add_slowdown(struct plot *p, const struct latency_row *v, const char *variant,
                                struct err *e)
{
    const int n = p->n;
    enum status st = OK;

    for (int i = 0; i < n && st == OK; i++) {
        struct plot_point a = p->point[i];
        const int at = is_window(&v[i]) ? -1 : window_of(p, v, n, variant, i);
        if (at < 0)
            continue;
        const struct plot_point *const w = &p->point[at];
        const double slower[] = {w->y / a.y, w->z / a.z};
        a.row++;
        a.low = a.high = a.z = NAN;
        for (int k = 0; k < 2 && st == OK; k++) {
            a.kind = k ? KIND_ARITHMETIC : KIND_SLOWDOWN;
            a.y = slower[k];
            st = plot_add(p, &a, e);
        }
    }
    return st;
}

static enum status add_published(struct plot *p, struct err *e)
{
    enum status st = OK;
    int series;

    st = plot_name(&series, &p->series, "published, GPU", 1000, e);
    for (int c = 0; c < p->columns.n; c++)
        for (size_t i = 0; i < ARRAY_LEN(published) && st == OK; i++) {
            struct plot_point a = plot_point_empty();
            a.row = 1;
            a.column = c;
            a.series = series;
            a.kind = KIND_PUBLISHED;
            a.x = published[i].length;
            a.y = published[i].slowdown;
            st = plot_add(p, &a, e);
        }
    return st;
}

/* The models of one kind of rows: token by token, or in segments of so many. */
static enum status name_series(struct plot *p, struct plot_point *a, const struct rows *rows,
                               size_t i, struct err *e)
{
    const struct latency_row *const r = (const struct latency_row *)rows->row + i;
    char kind[3 * TEXT_SIZE + 64], text[PLOT_TEXT], name[sizeof(kind) + PLOT_TEXT + 2];

    if (is_window(r))
        snprintf(kind, sizeof(kind), "%s sliding window", r->variant);
    else if (is_decode(r))
        snprintf(kind, sizeof(kind), "%s %s, token by token", r->variant, r->mem_kind);
    else
        snprintf(kind, sizeof(kind), "%s %s, segments of %lld", r->variant, r->mem_kind,
                 (long long)r->seq_tokens);
    plot_label(text, &tables[TABLE_LATENCY], rows, i, speed_series, true);
    snprintf(name, sizeof(name), "%s%s%s", kind, *text ? ", " : "", text);
    return plot_name(&a->series, &p->series, name, plot_variant_style(r->variant), e);
}

/* The points of row 0 in the order of `used`. */
static enum status add_seconds(struct plot *p, const struct rows *used, struct err *e)
{
    const struct latency_row *const v = used->row;
    enum status st = OK;

    for (size_t i = 0; i < used->n && st == OK; i++) {
        struct plot_point a = plot_point_empty();
        per_token(&a, &v[i]);
        st = name_series(p, &a, used, i, e);
        if (st == OK)
            st = plot_name(&a.column, &p->columns, v[i].backend, plot_backend_style(v[i].backend),
                           e);
        if (st == OK)
            st = plot_add(p, &a, e);
    }
    return st;
}

enum status plot_eval_speed(struct plot *p, const struct plot_data *d, struct err *e)
{
    const struct rows *const all = &d->table[TABLE_LATENCY];
    struct latency_row *const v = malloc(all->n * sizeof(*v) + 1);
    struct rows used = {.row = v};
    const char *variant = NULL; /* whose window the others are compared with: the first there is */
    bool others = false;
    int row;

    if (!v)
        return fail(e, E_NOMEM, "no memory for a figure  -> free some");
    for (size_t i = 0; i < all->n; i++) {
        const struct latency_row *const r = (const struct latency_row *)all->row + i;
        struct plot_point unused;
        if (per_token(&unused, r))
            v[used.n++] = *r;
    }
    for (size_t i = 0; i < used.n; i++) {
        others = others || !is_window(&v[i]);
        if (is_window(&v[i]) && !variant)
            variant = v[i].variant;
    }
    enum status st = plot_name(&row, &p->rows, "", 0, e);
    if (!variant || !others) {
        snprintf(p->why, sizeof(p->why),
                 "latency.csv has no decode rows, apart from the reference's, of a window that is "
                 "recomputed beside a memory");
        goto out;
    }
    if (st == OK)
        st = add_seconds(p, &used, e);
    if (st == OK)
        st = add_slowdown(p, v, variant, e);
    if (st == OK)
        st = plot_name(&row, &p->rows, "slowdown", 0, e);
    if (st == OK)
        st = add_published(p, e);
out:
    free(v);
    return st;
}

/* ---- training ----------------------------------------------------------------------------- */

enum { KIND_LOSS, KIND_VALID, KIND_FLOOR };

static enum status add_train_row(struct plot *p, const struct train_row *r, int series,
                                 struct err *e)
{
    const double y[] = {r->loss_nats, r->valid_nats, r->valid_floor_nats};
    enum status st = OK;

    for (int k = 0; k < (int)ARRAY_LEN(y) && st == OK; k++) {
        struct plot_point a = plot_point_empty();
        a.series = series;
        a.kind = k;
        a.x = (double)r->step;
        a.y = y[k];
        if (isfinite(a.y))
            st = plot_add(p, &a, e);
    }
    return st;
}

enum status plot_training(struct plot *p, const struct plot_data *d, struct err *e)
{
    int index;
    enum status st = plot_name(&index, &p->rows, "", 0, e);

    if (st == OK)
        st = plot_name(&index, &p->columns, "", 0, e);
    for (int i = 0; i < d->n_train && st == OK; i++) {
        const struct train_row *const v = d->train[i].rows.row;
        const size_t n = d->train[i].rows.n;
        char name[3 * TEXT_SIZE];
        if (n == 0)
            continue;
        if (strcmp(v->variant, d->train[i].name) == 0 || !*d->train[i].name)
            snprintf(name, sizeof(name), "%s", v->variant);
        else
            snprintf(name, sizeof(name), "%s (%s)", v->variant, d->train[i].name);
        st = plot_name(&index, &p->series, name, plot_variant_style(v->variant), e);
        for (size_t k = 0; k < n && st == OK; k++)
            st = add_train_row(p, &v[k], index, e);
    }
    if (p->n == 0)
        snprintf(p->why, sizeof(p->why), "the folder has no curve of a training run (*.%s)",
                 tables[TABLE_TRAIN].file);
    return st;
}

/* ---- changes ------------------------------------------------------------------------------ */

enum { CHANGES_MAX = 80 };

/* "changed" is no verdict of times and comes last. */
static int verdict_style(const char *name)
{
    int n = 0;

    while (n < VERDICT_COUNT && strcmp(verdict_name[n], name) != 0)
        n++;
    return n;
}

enum status plot_changes(struct plot *p, const struct plot_data *d, struct err *e)
{
    int index, at = 0;
    enum status st = plot_name(&index, &p->rows, "", 0, e);

    if (st == OK)
        st = plot_name(&index, &p->columns, "", 0, e);
    for (int i = 0; i < d->n_changes && st == OK; i++) {
        const struct plot_change *const c = &d->change[i];
        struct plot_point a = plot_point_empty();
        if (!isfinite(c->pct) || at++ >= CHANGES_MAX)
            continue;
        a.y = at - 1;
        a.x = c->pct;
        a.low = c->low;
        a.high = c->high;
        a.z = c->threshold;
        text_put(a.label, PLOT_TEXT, c->name);
        st = plot_name(&a.series, &p->series, c->verdict, verdict_style(c->verdict), e);
        if (st == OK)
            st = plot_add(p, &a, e);
    }
    if (at > CHANGES_MAX)
        snprintf(p->why, sizeof(p->why), "%d more comparisons are not drawn", at - CHANGES_MAX);
    if (p->n == 0)
        snprintf(p->why, sizeof(p->why),
                 "the folder has no table of compare or gate with times (--format csv)");
    return st;
}

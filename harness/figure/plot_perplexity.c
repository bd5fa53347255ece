/* SPDX-License-Identifier: MIT
 *
 * Figures of perplexity: over memory length, and against what it costs in time and in bytes. */
#include "plot.h"

#include <string.h>

static bool scored(struct plot_point *out, const struct perplexity_row *row)
{
    if (strcmp(row->status, row_status_name[ROW_OK]) != 0 || !isfinite(row->ppl))
        return false;
    out->y = row->ppl;
    out->low = row->ppl_ci95_low;
    out->high = row->ppl_ci95_high;
    out->z = row->ppl_floor;
    return true;
}

static bool ppl_over_mem(struct plot_point *out, const void *row, const struct plot_data *d)
{
    (void)d;
    out->x = (double)((const struct perplexity_row *)row)->mem_tokens;
    return scored(out, row);
}

static bool ppl_over_time(struct plot_point *out, const void *row, const struct plot_data *d)
{
    const struct perplexity_row *const r = row;
    (void)d;

    if (!(r->tokens_per_s > 0) || !scored(out, r))
        return false;
    out->x = 1e6 / r->tokens_per_s;
    snprintf(out->label, PLOT_TEXT, "%lld", (long long)r->mem_tokens);
    return true;
}

static const char *const same_model[] = {
    "variant",    "workload",  "norm_place",  "mem_kind", "gate",  "backend", "seq_tokens",
    "mem_tokens", "layers",    "batch_size",  "d_model",  "heads", "d_head",  "d_inner",
    "clip",       "clamp_len", "same_length", "kv_heads", "ffn",   "norm",    "mask",
    "mask_heads", "rnn_cell",  "halt",        "settings", NULL};

/* Of the model with the same choices and shape, in the same run: the row with its threads, else
 * what all other rows agree on. NAN where there is none. */
static double bytes_of(const struct perplexity_row *r, const struct plot_data *d)
{
    const struct memory_row *const v = d->table[TABLE_MEMORY].row;
    double found = NAN;
    bool agreed = true;

    for (size_t i = 0; i < d->table[TABLE_MEMORY].n; i++) {
        const struct memory_row *const m = &v[i];
        const double bytes = (double)m->arena_peak_bytes;
        if (strcmp(m->status, row_status_name[ROW_OK]) != 0 || m->arena_peak_bytes == I64_EMPTY ||
            !plot_same(m, r, same_model))
            continue;
        if (m->threads == r->threads)
            return bytes;
        agreed = agreed && (isnan(found) || found == bytes);
        found = bytes;
    }
    return agreed ? found : NAN;
}

static bool ppl_over_bytes(struct plot_point *out, const void *row, const struct plot_data *d)
{
    const struct perplexity_row *const r = row;

    out->x = bytes_of(r, d);
    snprintf(out->label, PLOT_TEXT, "%lld", (long long)r->mem_tokens);
    return isfinite(out->x) && scored(out, r);
}

static const char *const ppl_rows[] = {
    "corpus",  "split", "unit",   "seq_tokens", "batch_size", "layers",
    "d_model", "heads", "d_head", "d_inner",    "threads",    NULL,
};

static const char NO_PPL[] = "perplexity.csv has no scored row";

enum status plot_perplexity_mem(struct plot *p, const struct plot_data *d, struct err *e)
{
    static const struct plot_panels spec = {
        .table = TABLE_PERPLEXITY,
        .rows = ppl_rows,
        .across = "backend",
        .point = ppl_over_mem,
        .need = 2,
        .nothing = NO_PPL,
        .too_few = "one memory length only",
    };
    return plot_panels(p, d, &spec, e);
}

/* The points that no other one of their panel beats in both, once more, as kind 1. */
static enum status add_front(struct plot *p, struct err *e)
{
    const int n = p->n;
    enum status st = OK;

    for (int i = 0; i < n && st == OK; i++) {
        struct plot_point a = p->point[i];
        bool beaten = false;
        for (int k = 0; k < n && !beaten; k++) {
            const struct plot_point *const b = &p->point[k];
            beaten = b->row == a.row && b->column == a.column && b->x <= a.x && b->y <= a.y &&
                     (b->x < a.x || b->y < a.y);
        }
        a.kind = 1;
        if (!beaten)
            st = plot_add(p, &a, e);
    }
    return st;
}

enum status plot_perplexity_time(struct plot *p, const struct plot_data *d, struct err *e)
{
    static const struct plot_panels spec = {
        .table = TABLE_PERPLEXITY,
        .rows = ppl_rows,
        .across = "backend",
        .point = ppl_over_time,
        .need = 2,
        .nothing = NO_PPL,
        .too_few = "one point only",
    };
    const enum status st = plot_panels(p, d, &spec, e);
    return st == OK ? add_front(p, e) : st;
}

enum status plot_perplexity_bytes(struct plot *p, const struct plot_data *d, struct err *e)
{
    static const struct plot_panels spec = {
        .table = TABLE_PERPLEXITY,
        .rows = ppl_rows,
        .across = "backend",
        .point = ppl_over_bytes,
        .need = 2,
        .nothing = "memory.csv has no row of a model and shape that perplexity.csv scores",
        .too_few = "one point only",
    };
    const enum status st = plot_panels(p, d, &spec, e);
    return st == OK ? add_front(p, e) : st;
}

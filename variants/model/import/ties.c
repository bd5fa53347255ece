/* SPDX-License-Identifier: MIT
 *
 * Tied tensors: see opened.h. */
#include "model_type.h"
#include "opened.h"

/* Does this model tie what the row stands for? */
static bool is_tied(const struct published *p, const struct tensor_row *row, int layer,
                    const char *rest)
{
    const struct adaptive *const a = &p->config.adaptive;

    return row->tie == TIE_WORDS    ? p->config.tied && strcmp(rest, ".bias") != 0
           : row->tie == TIE_LAYERS ? !p->config.uv_per_layer
           : row->tie == TIE_MAP    ? layer >= 0 && layer < a->n_tie && a->tie[layer]
                                    : false;
}

bool ties_find(const struct shard_tensor **first, const struct published *p, const char *name)
{
    const size_t skip = strlen(p->prefix);
    const size_t outer = strncmp(name, p->outer, strlen(p->outer)) == 0 ? strlen(p->outer) : 0;
    const bool has_prefix = strncmp(name, p->prefix, skip) == 0;

    for (const struct tensor_row *row = p->rows->tensors; row->ours; row++) {
        char with[TENSOR_NAME];
        const char *rest;
        int layer;
        if (row->tie == TIE_NONE || (!row->bare && !has_prefix) ||
            !tensor_row_covers(row->published, name + (row->bare ? outer : skip), &layer, &rest) ||
            !is_tied(p, row, layer, rest))
            continue;
        tensor_row_name(with, row->with, p->prefix, layer, 0, rest);
        *first = shards_find(&p->shards, with);
        if (!*first) { /* one table for all clusters */
            tensor_row_name(with, row->with, p->prefix, 0, 0, rest);
            *first = shards_find(&p->shards, with);
        }
        return true;
    }
    return false;
}

static enum status differs(const struct published *p, const struct tensor *t,
                           const struct shard_tensor *first, const char *what, struct err *e)
{
    return fail(e, E_IO,
                "checkpoint %s: config.json ties \"%s\" to \"%s\", which has other %s  -> the "
                "config and the files of one model",
                p->path, t->name, first ? first->t->name : "none", what);
}

enum status ties_check_shape(const struct published *p, const struct tensor *t,
                             const struct shard_tensor *first, struct err *e)
{
    if (!first || first->t->rank != t->rank ||
        memcmp(first->t->shape, t->shape, sizeof(*t->shape) * (size_t)t->rank) != 0)
        return differs(p, t, first, "sizes", e);
    return tensor_is_readable(t->dtype) && tensor_is_readable(first->t->dtype)
               ? OK
               : differs(p, t, first, "types", e);
}

static bool same_numbers(const struct tensor *a, const struct tensor *b)
{
    enum { AT_ONCE = 2048 };
    float x[AT_ONCE], y[AT_ONCE];

    for (size_t at = 0; at < a->n; at += AT_ONCE) {
        const size_t n = a->n - at < AT_ONCE ? a->n - at : AT_ONCE;
        tensor_floats(x, a, at, n);
        tensor_floats(y, b, at, n);
        for (size_t i = 0; i < n; i++)
            if (!(x[i] == y[i])) /* nor with NaN */
                return false;
    }
    return true;
}

enum status ties_check_numbers(const struct published *p, struct err *e)
{
    for (int i = 0; i < p->shards.n_tensors; i++) {
        const struct shard_tensor *const t = &p->shards.tensors[i], *first;
        if (t->used || !ties_find(&first, p, t->t->name))
            continue;
        const bool same = same_numbers(t->t, first->t);
        shards_drop(t->in, t->t);
        shards_drop(first->in, first->t);
        if (!same)
            return differs(p, t->t, first, "numbers", e);
    }
    return OK;
}

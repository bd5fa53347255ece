/* SPDX-License-Identifier: MIT
 *
 * A norm behind the embedding: see opened.h. */
#include "model_type.h"
#include "opened.h"

static bool is_normed(const struct published *p, const struct tensor_row *row)
{
    return row->normed && p->norms_words;
}

/* The weights (0) or biases (1) of the norm. */
static struct shard_tensor *norm_of(const struct published *p, const struct tensor_row *row,
                                    int which, char name[TENSOR_NAME])
{
    tensor_row_name(name, row->normed, p->prefix, -1, 0, which ? ".bias" : ".weight");
    return shards_find(&p->shards, name);
}

enum status word_norm_check(const struct published *p, const struct tensor_row *row,
                            const struct param *w, struct err *e)
{
    char name[TENSOR_NAME];

    for (int i = 0; i < 2 && is_normed(p, row); i++) {
        struct shard_tensor *const t = norm_of(p, row, i, name);
        if (!t || t->t->rank != 1 || t->t->shape[0] != w->shape[1] ||
            !tensor_is_readable(t->t->dtype))
            return fail(e, E_IO,
                        "checkpoint %s: no tensor \"%s\" of %d numbers  -> give all files of one "
                        "model",
                        p->path, name, w->shape[1]);
        t->used = true;
    }
    return OK;
}

/* By weights and biases of n numbers each. */
static bool norm_row(float *row, size_t n, double eps, const float *weights, const float *biases)
{
    double sum = 0, squares = 0;
    bool finite = true;

    for (size_t i = 0; i < n; i++)
        sum += (double)row[i];
    const double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += ((double)row[i] - mean) * ((double)row[i] - mean);
    const double scale = 1 / sqrt(squares / (double)n + eps);
    for (size_t i = 0; i < n; i++) {
        row[i] = (float)(((double)row[i] - mean) * scale * (double)weights[i] + (double)biases[i]);
        finite = finite && isfinite(row[i]);
    }
    return finite;
}

enum status word_norm_apply(const struct published *p, const struct tensor_row *row,
                            const struct param *w, struct err *e)
{
    const size_t n = (size_t)w->shape[1];
    char name[TENSOR_NAME];
    bool finite = true;

    if (!is_normed(p, row))
        return OK;
    float *const weights = need_room(2 * n, sizeof(*weights));
    for (int i = 0; i < 2; i++)
        tensor_floats(weights + (size_t)i * n, norm_of(p, row, i, name)->t, 0, n);
    for (float *at = w->data; at < w->data + w->n; at += n)
        finite = norm_row(at, n, (double)p->config.ln_eps, weights, weights + n) && finite;
    free(weights);
    return finite ? OK
                  : fail(e, E_IO,
                         "checkpoint %s: tensor \"%s\" makes values that are not finite  -> the "
                         "file as published",
                         p->path, name);
}

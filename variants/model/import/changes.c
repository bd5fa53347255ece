/* SPDX-License-Identifier: MIT
 *
 * See changes.h. Where a number goes is asked of what reads it: of a tensor that holds its own places,
 * the reader makes the places of ours. */
#include "changes.h"

#include "layout.h"
#include "variants/base/gguf.h"

enum { WIDEST = 8 }; /* bytes of a number */

static enum status no_memory(const struct published *p, struct err *e)
{
    return fail(e, E_NOMEM, "checkpoint %s: no memory for its numbers  -> free some", p->path);
}

static enum status no_form(const struct published *p, const struct piece *to, const char *why,
                           struct err *e)
{
    return fail(e, E_UNSUPPORTED,
                "checkpoint %s: tensor \"%s\" cannot hold the trained numbers: %s  -> train with "
                "--train-only, without it",
                p->path, to->name, why);
}

static float published_number(const struct published *p, const struct tensor_row *row, float x)
{
    return row->plus_one && !p->form.computed ? x - 1 : row->log && p->form.computed ? -expf(x) : x;
}

static enum status put_numbers(float *numbers, const struct published *p, const struct piece *to,
                               const size_t *places, struct err *e)
{
    for (size_t i = 0; i < to->w.n; i++)
        if (places[i])
            numbers[places[i] - 1] = published_number(p, to->row, to->w.data[i]);
        else if (to->w.data[i] != 0)
            return no_form(p, to, "its rank is lower than the model's", e);
    return OK;
}

static enum status put_piece(struct changes *c, const struct published *p, const struct piece *to,
                             struct err *e)
{
    const struct shard_tensor *const at = shards_find(&p->shards, to->name);
    float **const numbers = &c->numbers[at - p->shards.tensors];

    if (to->row->layout == LAYOUT_MXFP4)
        return no_form(p, to, "blocks of 4 bits", e);
    if (to->row->normed && p->norms_words)
        return no_form(p, to, "a norm follows it in the file", e);
    if (!*numbers) {
        *numbers = malloc(at->t->n * sizeof(**numbers));
        if (!*numbers)
            return no_memory(p, e);
        tensor_floats(*numbers, at->t, 0, at->t->n);
        c->changed++;
    }
    size_t *const places = calloc(to->w.n, sizeof(*places));
    if (!places)
        return no_memory(p, e);
    enum status st = layout_places(places, p, &to->w, to->row, at->t);
    st = st == OK ? put_numbers(*numbers, p, to, places, e) : no_memory(p, e);
    free(places);
    return st;
}

static enum status put(struct changes *c, const struct published *p, const struct param *w,
                       struct err *e)
{
    struct param before = *w;

    before.data = malloc(w->n * sizeof(*before.data));
    if (!before.data)
        return no_memory(p, e);
    enum status st = published_load_one(p, &before, e);
    const bool same = st == OK && memcmp(before.data, w->data, w->n * sizeof(*w->data)) == 0;
    free(before.data);
    for (int nth = 0, of = 1; st == OK && !same && nth < of; nth++) {
        const struct piece to = piece_of(p, w, nth);
        of = to.of;
        st = put_piece(c, p, &to, e);
    }
    return st;
}

enum status changes_find(struct changes *c, const struct published *p, const struct params *params,
                         struct err *e)
{
    enum status st = OK;

    *c = (struct changes){.n = p->shards.n_tensors};
    c->numbers = need_room((size_t)c->n, sizeof(*c->numbers));
    for (int i = 0; st == OK && i < params->n; i++)
        st = put(c, p, &params->v[i], e);
    if (st != OK)
        changes_free(c);
    return st;
}

void changes_free(struct changes *c)
{
    for (int k = 0; k < c->n; k++)
        free(c->numbers[k]);
    free(c->numbers);
    *c = (struct changes){0};
}

/* ---- files -------------------------------------------------------------------------------- */

/* As published, or with the numbers of what it is tied to. */
static const float *numbers_of(const struct changes *c, const struct published *p,
                               const struct shard_tensor *t)
{
    const struct shard_tensor *first;

    if (!t->used && ties_find(&first, p, t->t->name))
        t = first;
    return c->numbers[t - p->shards.tensors];
}

/* Wide numbers first: readers want tensors at multiples of their width. */
static enum status write_safetensors(const struct safetensors *file, const struct tensor *t,
                                     const char *path, struct err *e)
{
    struct tensor *const sorted = need_room((size_t)file->n_tensors + 1, sizeof(*sorted));
    int n = 0;

    for (size_t width = WIDEST + 1; width-- > 0;)
        for (int i = 0; i < file->n_tensors; i++)
            if ((t[i].n ? (size_t)min_wide((int64_t)(t[i].bytes / t[i].n), WIDEST) : 0) == width)
                sorted[n++] = t[i];
    const enum status st =
        safetensors_write(path, sorted, n, (const char *const *)file->meta, file->n_meta, e);
    free(sorted);
    return st;
}

static enum status write_gguf(const struct safetensors *file, const struct tensor *t,
                              const char *path, struct err *e)
{
    for (int i = 0; i < file->n_tensors; i++)
        if (!t[i].bytes)
            return fail(e, E_UNSUPPORTED,
                        "checkpoint %s: tensor \"%s\" has dtype %s: not written  -> convert it "
                        "again",
                        file->path, t[i].name, t[i].dtype_name);
    const int why = gguf_write(path, file, t);
    return why ? fail(e, E_IO, "cannot write %s: %s  -> check the folder and its free space", path,
                      strerror(why))
               : OK;
}

static size_t place(const struct safetensors *file, const struct tensor *t)
{
    return (size_t)((const unsigned char *)t->data - file->map);
}

/* `whole` has all tensors of file i. */
static enum status write_whole(const struct changes *c, const struct published *p, int i,
                               const struct safetensors *whole, const char *path, struct err *e)
{
    const struct safetensors *const file = &p->shards.files[i];
    struct tensor *const t = need_room((size_t)whole->n_tensors + 1, sizeof(*t));

    memcpy(t, whole->tensors, sizeof(*t) * (size_t)whole->n_tensors);
    for (int k = 0; k < p->shards.n_tensors; k++) {
        const struct shard_tensor *const s = &p->shards.tensors[k];
        const float *const numbers = s->in == file ? numbers_of(c, p, s) : NULL;
        struct tensor *of = t;
        if (!numbers)
            continue;
        while (place(whole, &whole->tensors[of - t]) != place(file, s->t) || of->n != s->t->n)
            of++;
        of->dtype = DTYPE_F32;
        of->data = numbers;
        of->bytes = of->n * sizeof(*numbers);
    }
    const enum status st =
        p->form.computed ? write_gguf(whole, t, path, e) : write_safetensors(whole, t, path, e);
    free(t);
    return st;
}

enum status changes_write(const struct changes *c, const struct published *p, int i,
                          const char *path, struct err *e)
{
    const struct safetensors *const file = &p->shards.files[i];
    struct safetensors whole;
    json_t *keys;

    if (!p->form.computed)
        return write_whole(c, p, i, file, path, e);
    TRY(gguf_open(&whole, &keys, file->path, e)); /* some tensors became keys */
    const enum status st = write_whole(c, p, i, &whole, path, e);
    safetensors_close(&whole);
    json_decref(keys);
    return st;
}

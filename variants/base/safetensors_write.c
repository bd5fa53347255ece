/* SPDX-License-Identifier: MIT
 *
 * Writing safetensors files. */
#include "safetensors.h"

#include "half.h"
#include "json_text.h"

#include <endian.h>

static size_t bytes_of(const struct tensor *t)
{
    return t->dtype <= DTYPE_I32 ? t->n * ELEMENT_BYTES : t->bytes;
}

/* The header object; NULL if a string is not UTF-8, which JSON requires. */
static json_t *make_header(const struct tensor *tensors, int n, const char *const *meta, int n_meta)
{
    json_t *header = json_object(), *pairs = json_object();
    bool failed = false;
    size_t at = 0;

    for (int i = 0; i < n_meta; i++, meta += 2)
        failed |= json_object_set_new(pairs, meta[0], json_string(meta[1])) != 0;
    if (n_meta > 0)
        failed |= json_object_set(header, SAFETENSORS_META, pairs) != 0;
    json_decref(pairs);

    for (int i = 0; i < n; i++) {
        const struct tensor *t = &tensors[i];
        const size_t end = at + bytes_of(t);
        json_t *shape = json_array();
        size_t product = 1;

        CHECK(t->rank >= 0 && t->rank <= TENSOR_RANK && (t->data || t->n == 0));
        CHECK(strcmp(t->name, SAFETENSORS_META) != 0 && !json_object_get(header, t->name));
        for (int d = 0; d < t->rank; d++) {
            CHECK(t->shape[d] >= 0);
            product *= (size_t)t->shape[d];
            json_array_append_new(shape, json_integer(t->shape[d]));
        }
        CHECK(product == t->n);
        const char *const type = t->dtype == DTYPE_I32   ? "I32"
                                 : t->dtype == DTYPE_F32 ? "F32"
                                                         : t->dtype_name;
        json_t *entry = json_pack("{s:s, s:o, s:[I,I]}", "dtype", type, "shape", shape,
                                  "data_offsets", (json_int_t)at, (json_int_t)end);
        failed |= json_object_set_new(header, t->name, entry) != 0;
        at = end;
    }
    if (!failed)
        return header;
    json_decref(header);
    return NULL;
}

struct whole {
    const char *text;
    const struct tensor *tensors;
    int n;
};

/* Length, header text padded to a multiple of 8, and data. */
static bool put_whole(FILE *f, const void *arg)
{
    const struct whole *const w = arg;
    const size_t length = strlen(w->text), padded = round_up(length, 8);
    const uint64_t field = htole64(padded);

    bool ok = fwrite(&field, sizeof(field), 1, f) == 1 &&
              fprintf(f, "%s%*s", w->text, (int)(padded - length), "") >= 0;
    for (int i = 0; ok && i < w->n; i++)
        ok =
            w->tensors[i].n == 0 || fwrite(w->tensors[i].data, bytes_of(&w->tensors[i]), 1, f) == 1;
    return ok;
}

enum status safetensors_write(const char *path, const struct tensor *tensors, int n,
                              const char *const *meta, int n_meta, struct err *e)
{
    enum status st = OK;
    char *text = NULL;
    json_t *header = make_header(tensors, n, meta, n_meta);

    if (!header) {
        st = fail(e, E_IO, "checkpoint %s: cannot make the header  -> its strings must be UTF-8",
                  path);
        goto out;
    }
    text = json_write(header, JSON_COMPACT);
    if (!text) {
        st = fail(e, E_NOMEM, "checkpoint %s: no memory for its header  -> free some memory", path);
        goto out;
    }
    const int why = half_write(path, put_whole, &(struct whole){text, tensors, n});
    if (why != 0)
        st =
            fail(e, E_IO, "checkpoint %s: cannot write: %s  -> check the folder and its free space",
                 path, strerror(why));
out:
    json_decref(header);
    free(text);
    return st;
}

/* SPDX-License-Identifier: MIT
 *
 * Writes a safetensors file beside its name, syncs it and renames it: after a crash the old file
 * or the new one is there, never half of one. */
#include "safetensors.h"

#include "half.h"
#include "json_text.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <unistd.h>

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
        const size_t end = at + t->n * ELEMENT_BYTES;
        json_t *shape = json_array();
        size_t product = 1;

        CHECK(t->dtype <= DTYPE_I32 && t->rank >= 0 && t->rank <= TENSOR_RANK &&
              (t->data || t->n == 0));
        CHECK(strcmp(t->name, SAFETENSORS_META) != 0 && !json_object_get(header, t->name));
        for (int d = 0; d < t->rank; d++) {
            CHECK(t->shape[d] >= 0);
            product *= (size_t)t->shape[d];
            json_array_append_new(shape, json_integer(t->shape[d]));
        }
        CHECK(product == t->n);
        json_t *entry =
            json_pack("{s:s, s:o, s:[I,I]}", "dtype", t->dtype == DTYPE_I32 ? "I32" : "F32",
                      "shape", shape, "data_offsets", (json_int_t)at, (json_int_t)end);
        failed |= json_object_set_new(header, t->name, entry) != 0;
        at = end;
    }
    if (!failed)
        return header;
    json_decref(header);
    return NULL;
}

/* Write length, header text padded to a multiple of 8, and data; sync. 0 or an errno. */
static int write_file(int fd, const char *text, const struct tensor *tensors, int n)
{
    const size_t length = strlen(text), padded = round_up(length, 8);
    const uint64_t field = htole64(padded);
    FILE *const f = fdopen(fd, "wb");
    if (!f) {
        const int why = errno;
        close(fd);
        return why;
    }

    bool ok = fwrite(&field, sizeof(field), 1, f) == 1 &&
              fprintf(f, "%s%*s", text, (int)(padded - length), "") >= 0;
    for (int i = 0; ok && i < n; i++)
        ok = tensors[i].n == 0 ||
             fwrite(tensors[i].data, ELEMENT_BYTES, tensors[i].n, f) == tensors[i].n;
    ok = ok && fflush(f) == 0 && fsync(fileno(f)) == 0;

    const int why = ok ? 0 : errno;
    if (fclose(f) != 0 && ok)
        return errno;
    return why;
}

/* Make a rename in the folder of `path` durable. 0 or an errno. */
static int sync_folder_of(const char *path)
{
    char *copy = strdup(path);
    const int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int why = fd < 0 || fsync(fd) != 0 ? errno : 0;

    if (why == EINVAL) /* some file systems cannot sync a folder */
        why = 0;
    if (fd >= 0)
        close(fd);
    free(copy);
    return why;
}

/* 0 or an errno. */
static int replace(const char *path, const char *text, const struct tensor *tensors, int n)
{
    char *half;
    const int fd = half_create(&half, path);
    int why = fd < 0 ? errno : write_file(fd, text, tensors, n);

    if (why == 0 && rename(half, path) != 0)
        why = errno;
    if (why == 0)
        why = sync_folder_of(path);
    else if (half)
        unlink(half);
    free(half);
    return why;
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
    const int why = replace(path, text, tensors, n);
    if (why != 0)
        st =
            fail(e, E_IO, "checkpoint %s: cannot write: %s  -> check the folder and its free space",
                 path, strerror(why));
out:
    json_decref(header);
    free(text);
    return st;
}

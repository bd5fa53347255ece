/* SPDX-License-Identifier: MIT
 *
 * See gguf_files.h. */
#include "gguf_files.h"

#include "variants/base/gguf.h"

#define COUNT "split.count"
#define NUMBER "split.no" /* from 0 */
#define TENSORS "split.tensors.count"

enum { MOST_FILES = 512, PATH_SIZE = 4096, END = 64 };

/* -1 without the key. */
static json_int_t number(const json_t *keys, const char *key)
{
    const json_t *const value = json_object_get(keys, key);

    return json_is_integer(value) ? json_integer_value(value) : -1;
}

/* The end of the name of file i, from 0, of n. */
static void end_of(char end[END], int i, int n)
{
    snprintf(end, END, "-%05d-of-%05d.gguf", i + 1, n);
}

/* The path of file i from that of the first. */
static enum status path_of(char to[PATH_SIZE], const char *first, int i, int n, struct err *e)
{
    const size_t length = strlen(first);
    char end[END], other[END];

    end_of(end, 0, n);
    end_of(other, i, n);
    if (length >= PATH_SIZE || !text_ends(first, end))
        return fail(e, E_IO,
                    "checkpoint %s: is one of %d files  -> give the first, whose name ends in %s, "
                    "or join them into one",
                    first, n, end);
    snprintf(to, PATH_SIZE, "%s", first);
    memcpy(to + length - strlen(end), other, strlen(other) + 1);
    return OK;
}

static enum status open_part(struct gguf_files *g, const char *path, int i, int n, struct err *e)
{
    json_t *keys;

    TRY(gguf_open(&g->file[i], &keys, path, e));
    g->n = i + 1;
    const bool good = number(keys, NUMBER) == i && number(keys, COUNT) == n;
    json_decref(keys);
    return good ? OK
                : fail(e, E_IO,
                       "checkpoint %s: is not file %d of %d by its keys split.no and split.count  "
                       "-> give all files of one model",
                       path, i + 1, n);
}

static enum status open_parts(struct gguf_files *g, const char *path, int n, struct err *e)
{
    json_int_t tensors = g->file[0].n_tensors;
    char other[PATH_SIZE];

    TRY(path_of(other, path, 0, n, e));
    if (number(g->keys, NUMBER) != 0)
        return fail(e, E_IO, "checkpoint %s: is not the first file by split.no  -> give the first",
                    path);
    for (int i = 1; i < n; i++) {
        TRY(path_of(other, path, i, n, e));
        TRY(open_part(g, other, i, n, e));
        tensors += g->file[i].n_tensors;
    }
    const json_int_t said = number(g->keys, TENSORS);
    if (said >= 0 && said != tensors)
        return fail(e, E_IO,
                    "checkpoint %s: its %d files have %lld tensors, split.tensors.count is %lld  "
                    "-> give all files of one model",
                    path, n, (long long)tensors, (long long)said);
    return OK;
}

static enum status check_numbers(const json_t *keys, const char *path, struct err *e)
{
    static const char *const all[] = {COUNT, NUMBER, TENSORS};

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (json_object_get(keys, all[i]) && number(keys, all[i]) < 0)
            return fail(e, E_IO, "checkpoint %s: %s is not a number  -> convert it again", path,
                        all[i]);
    return OK;
}

static enum status open_all(struct gguf_files *g, const char *path, struct err *e)
{
    struct safetensors first;

    TRY(gguf_open(&first, &g->keys, path, e));
    const json_int_t said = number(g->keys, COUNT);
    const int n = said > 1 && said <= MOST_FILES ? (int)said : 1;
    g->file = need_room((size_t)n, sizeof(*g->file));
    g->file[0] = first;
    g->n = 1;
    TRY(check_numbers(g->keys, path, e));
    if (said > MOST_FILES)
        return fail(e, E_IO, "checkpoint %s: %lld files  -> join them into one", path,
                    (long long)said);
    return n > 1 ? open_parts(g, path, n, e) : OK;
}

enum status gguf_files_open(struct gguf_files *g, const char *path, struct err *e)
{
    *g = (struct gguf_files){.n = 0};
    const enum status st = open_all(g, path, e);
    if (st != OK)
        gguf_files_close(g);
    return st;
}

void gguf_files_close(struct gguf_files *g)
{
    for (int i = 0; g->file && i < g->n; i++)
        safetensors_close(&g->file[i]);
    free(g->file);
    json_decref(g->keys);
    *g = (struct gguf_files){.n = 0};
}

const struct tensor *gguf_files_find(const struct gguf_files *g, const char *name)
{
    const struct tensor *found = NULL;

    for (int i = 0; !found && i < g->n; i++)
        found = safetensors_find(&g->file[i], name);
    return found;
}

/* SPDX-License-Identifier: MIT
 *
 * Opening shards. Each file is mapped once and read from its beginning to its end. */
#include "shards.h"

#include "config_json.h"

#include <dirent.h>
#include <sys/mman.h>
#include <unistd.h>

enum { INDEX_BYTES = 32 << 20, MAX_FILES = 512, MAX_TENSORS = 100000, PATH_SIZE = 4096 };

#define INDEX "model.safetensors.index.json"
#define SINGLE "model.safetensors"
#define WHOLE "-00001-of-00001.safetensors" /* the one shard of a model of one */

static enum status join(char to[PATH_SIZE], const char *checkpoint, const char *dir,
                        const char *name, struct err *e)
{
    return snprintf(to, PATH_SIZE, "%s/%s", dir, name) < PATH_SIZE
               ? OK
               : fail(e, E_IO, "checkpoint %s: its path is too long  -> use a shorter one",
                      checkpoint);
}

static bool is_plain(const char *name)
{
    return *name && *name != '.' && !strpbrk(name, "/\\") && text_ends(name, ".safetensors");
}

/* ---- what is there ------------------------------------------------------------------------ */

/* Files of weights in a folder that lacks the usual ones. The first of each kind in the alphabet, ""
 * where there is none. */
struct around {
    char shard[256]; /* NAME-00001-of-00002.safetensors and so on */
    char whole[256]; /* NAME-00001-of-00001.safetensors: all there is */
    int n_whole;
    char single[256]; /* of another name */
    char other[256];  /* of another format */
};

static void keep_first(char kept[256], const char *name)
{
    if (!*kept || strcmp(name, kept) < 0)
        snprintf(kept, 256, "%s", name);
}

static void look_around(struct around *a, const char *dir)
{
    static const char *const ends[] = {".bin", ".pt", ".pth",     ".ckpt",
                                       ".pkl", ".h5", ".msgpack", ".gguf"};
    DIR *const d = opendir(dir);
    const struct dirent *entry;

    *a = (struct around){0};
    while (d && (entry = readdir(d))) {
        const char *const name = entry->d_name;
        const bool weights = is_plain(name), whole = weights && text_ends(name, WHOLE);
        const char *const of = weights ? strstr(name, "-of-") : NULL;
        if (weights)
            keep_first(whole ? a->whole : of ? a->shard : a->single, name);
        a->n_whole += whole;
        for (size_t i = 0; i < ARRAY_LEN(ends); i++)
            if (text_ends(name, ends[i]))
                keep_first(a->other, name);
    }
    if (d)
        closedir(d);
}

static enum status nothing_there(const struct around *a, const char *checkpoint, struct err *e)
{
    if (*a->shard || *a->whole)
        return fail(e, E_IO,
                    "checkpoint %s: has %.80s and no " INDEX ", which says what is in it  -> "
                    "fetch that file, too",
                    checkpoint, *a->shard ? a->shard : a->whole);
    if (text_ends(a->other, ".gguf"))
        return fail(e, E_IO,
                    "checkpoint %s: has %.80s and no " SINGLE
                    "  -> give that file, --ckpt %s/%.80s",
                    checkpoint, a->other, checkpoint, a->other);
    if (*a->other)
        return fail(e, E_IO,
                    "checkpoint %s: has %.80s and no " SINGLE ": pickles can run code and are "
                    "not read  -> convert it, see: bench import --help",
                    checkpoint, a->other);
    if (*a->single)
        return fail(e, E_IO,
                    "checkpoint %s: has %.80s and no " SINGLE "  -> give that file, if it is the "
                    "model",
                    checkpoint, a->single);
    return fail(e, E_IO, "checkpoint %s: no " SINGLE "  -> give the folder of a published model",
                checkpoint);
}

/* ---- one file ----------------------------------------------------------------------------- */

static enum status add_file(struct shards *s, const char *path, struct err *e)
{
    struct safetensors *const files = realloc(s->files, sizeof(*files) * (size_t)(s->n_files + 1));

    NEED(files);
    s->files = files;
    TRY(safetensors_open_published(&files[s->n_files], path, e));
    madvise((void *)files[s->n_files].map, files[s->n_files].size, MADV_SEQUENTIAL);
    s->n_files++;
    return OK;
}

static int by_name(const void *a, const void *b)
{
    const struct shard_tensor *const x = a, *const y = b;

    return strcmp(x->t->name, y->t->name);
}

static enum status make_list(struct shards *s, int most, const char *checkpoint, struct err *e)
{
    if (most > MAX_TENSORS)
        return fail(e, E_IO, "checkpoint %s: %d tensors  -> use at most %d", checkpoint, most,
                    (int)MAX_TENSORS);
    s->tensors = need_room((size_t)most + 1, sizeof(*s->tensors));
    return OK;
}

/* Those of all files, by their names. */
static enum status list_all(struct shards *s, const char *checkpoint, struct err *e)
{
    int n = 0;

    for (int k = 0; k < s->n_files; k++)
        n += min_int(s->files[k].n_tensors, MAX_TENSORS + 1);
    TRY(make_list(s, n, checkpoint, e));
    for (int k = 0; k < s->n_files; k++)
        for (int i = 0; i < s->files[k].n_tensors; i++)
            s->tensors[s->n_tensors++] =
                (struct shard_tensor){&s->files[k].tensors[i], &s->files[k], false};
    qsort(s->tensors, (size_t)s->n_tensors, sizeof(*s->tensors), by_name);
    return OK;
}

static enum status open_single(struct shards *s, const char *checkpoint, const char *path,
                               struct err *e)
{
    TRY(add_file(s, path, e));

    return list_all(s, checkpoint, e);
}

/* ---- several files ------------------------------------------------------------------------ */

/* Names of files in the order in which the index first has them. */
static enum status list_files(const char *names[MAX_FILES], int *n, const json_t *map,
                              const char *checkpoint, struct err *e)
{
    const char *tensor;
    json_t *file;

    json_object_foreach((json_t *)map, tensor, file)
    {
        const char *const name = json_string_value(file);
        int i = 0;
        if (!name || !is_plain(name))
            return fail(e, E_IO, "checkpoint %s: index names \"%.80s\"  -> write plain file names",
                        checkpoint, name ? name : "");
        while (i < *n && strcmp(names[i], name) != 0)
            i++;
        if (i == *n && *n == MAX_FILES)
            return fail(e, E_IO, "checkpoint %s: index names more than %d files  -> use fewer",
                        checkpoint, (int)MAX_FILES);
        if (i == *n)
            names[(*n)++] = name;
    }
    return OK;
}

static enum status open_files(struct shards *s, const char *const *names, int n,
                              const char *checkpoint, const char *dir, struct err *e)
{
    char path[PATH_SIZE];

    for (int i = 0; i < n; i++) {
        TRY(join(path, checkpoint, dir, names[i], e));
        TRY(add_file(s, path, e));
    }
    return OK;
}

/* A tensor that there is twice. */
static enum status no_doubles(const struct shards *s, const char *checkpoint, struct err *e)
{
    for (int i = 1; i < s->n_tensors; i++)
        if (strcmp(s->tensors[i].t->name, s->tensors[i - 1].t->name) == 0)
            return fail(e, E_IO, "checkpoint %s: tensor \"%s\" is in %s  -> use one of them",
                        checkpoint, s->tensors[i].t->name,
                        s->tensors[i].in == s->tensors[i - 1].in ? "the file twice" : "two files");
    return OK;
}

static enum status take_tensors(struct shards *s, const json_t *map, const char *checkpoint,
                                struct err *e)
{
    const char *name;
    json_t *file;

    TRY(list_all(s, checkpoint, e));
    TRY(no_doubles(s, checkpoint, e));
    json_object_foreach((json_t *)map, name, file)
    {
        const struct shard_tensor *const t = shards_find(s, name);
        if (!t || strcmp(path_name(t->in->path), json_string_value(file)) != 0)
            return fail(e, E_IO,
                        "checkpoint %s: index wants \"%.95s\" in %.95s, which lacks it  "
                        "-> give all files of one model",
                        checkpoint, name, json_string_value(file));
    }
    return OK;
}

static enum status open_map(struct shards *s, const json_t *map, const char *checkpoint,
                            const char *dir, struct err *e)
{
    const char *names[MAX_FILES];
    int n = 0;

    if (!json_is_object(map) || json_object_size(map) == 0)
        return fail(e, E_IO, "checkpoint %s: index has no weight_map  -> give the whole index",
                    checkpoint);
    TRY(list_files(names, &n, map, checkpoint, e));
    TRY(open_files(s, names, n, checkpoint, dir, e));
    return take_tensors(s, map, checkpoint, e);
}

static enum status open_index(struct shards *s, const char *checkpoint, const char *dir,
                              const char *path, struct err *e)
{
    json_t *index;

    TRY(import_json(&index, checkpoint, path, INDEX_BYTES, e));
    const enum status st = open_map(s, json_object_get(index, "weight_map"), checkpoint, dir, e);
    json_decref(index);
    return st;
}

/* ---- all ---------------------------------------------------------------------------------- */

/* None of the usual files: a model of one shard, or what is there instead. */
static enum status open_around(struct shards *s, const char *checkpoint, const char *dir,
                               struct err *e)
{
    char path[PATH_SIZE];
    struct around a;

    look_around(&a, dir);
    if (a.n_whole != 1)
        return nothing_there(&a, checkpoint, e);
    TRY(join(path, checkpoint, dir, a.whole, e));
    return open_single(s, checkpoint, path, e);
}

enum status shards_open(struct shards *s, const char *checkpoint, const char *dir, const char *file,
                        struct err *e)
{
    char path[PATH_SIZE], index[PATH_SIZE];
    enum status st;

    *s = (struct shards){0};
    TRY(join(path, checkpoint, dir, SINGLE, e));
    TRY(join(index, checkpoint, dir, INDEX, e));
    if (file)
        st = open_single(s, checkpoint, file, e);
    else if (access(index, F_OK) == 0)
        st = open_index(s, checkpoint, dir, index, e);
    else if (access(path, F_OK) == 0)
        st = open_single(s, checkpoint, path, e);
    else
        st = open_around(s, checkpoint, dir, e);
    if (st != OK)
        shards_close(s);
    return st;
}

enum status shards_take(struct shards *s, struct safetensors *files, int n, const char *checkpoint,
                        struct err *e)
{
    *s = (struct shards){.files = files, .n_files = n};
    enum status st = list_all(s, checkpoint, e);
    if (st == OK)
        st = no_doubles(s, checkpoint, e);
    if (st != OK)
        shards_close(s);
    return st;
}

void shards_close(struct shards *s)
{
    for (int i = 0; i < s->n_files; i++)
        safetensors_close(&s->files[i]);
    free(s->files);
    free(s->tensors);
    *s = (struct shards){0};
}

struct shard_tensor *shards_find(const struct shards *s, const char *name)
{
    int low = 0, high = s->n_tensors;

    while (low < high) {
        const int mid = low + (high - low) / 2, order = strcmp(s->tensors[mid].t->name, name);
        if (order == 0)
            return &s->tensors[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

void shards_drop(const struct safetensors *file, const struct tensor *t)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t of_tensor = !t                             ? 0
                             : tensor_is_readable(t->dtype) ? tensor_bytes(t->dtype, t->n)
                                                            : t->n; /* blocks of MXFP4 */
    const size_t bytes = t ? of_tensor : file->size;
    const size_t at = t ? (size_t)((const unsigned char *)t->data - file->map) : 0;
    const size_t first = (at + page - 1) / page * page, end = (at + bytes) / page * page;

    if (end > first) /* advice: whole pages only, and what it does changes nothing that is read */
        madvise((void *)(file->map + first), end - first, MADV_DONTNEED);
}

/* SPDX-License-Identifier: MIT
 *
 * Reading safetensors files. jansson parses the header; this file checks that the header describes
 * every byte of the data exactly once, in whatever order, so that callers need not. */
#include "safetensors.h"

#include "json_text.h"
#include "lfs_pointer.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LENGTH_FIELD = 8, HEADER_MAX = 100 * 1000 * 1000 }; /* bytes */

#define NOT_OURS "  -> give a whole safetensors file"

/* Bytes of an element. Types that are not here may only stand in published files, where they have
 * as many as data_offsets say. */
static const struct type {
    const char *name;
    enum dtype dtype;
    size_t bytes;
} types[] = {
    {"F32", DTYPE_F32, 4},    {"I32", DTYPE_I32, 4},   {"F16", DTYPE_F16, 2},
    {"BF16", DTYPE_BF16, 2},  {"F64", DTYPE_OTHER, 8}, {"I64", DTYPE_OTHER, 8},
    {"U64", DTYPE_OTHER, 8},  {"U32", DTYPE_OTHER, 4}, {"I16", DTYPE_OTHER, 2},
    {"U16", DTYPE_OTHER, 2},  {"I8", DTYPE_OTHER, 1},  {"U8", DTYPE_OTHER, 1},
    {"BOOL", DTYPE_OTHER, 1}, {"", DTYPE_OTHER, 0},
};

/* Where a tensor lies, from the end of the header. */
struct span {
    size_t begin, end;
    struct tensor *tensor;
};

enum status safetensors_fail(const struct safetensors *s, struct err *e, const char *fmt, ...)
{
    char what[sizeof(e->msg)];

    VPRINT(what, sizeof(what), fmt);
    return fail(e, E_IO, "checkpoint %s: %s", s->path, what);
}

static enum status no_memory(const char *path, struct err *e)
{
    return fail(e, E_NOMEM,
                "checkpoint %s: no memory for its header  -> free some memory and try again", path);
}

/* ---- reading ------------------------------------------------------------------------------ */

static bool read_integer(const json_t *j, json_int_t most, json_int_t *out)
{
    *out = json_integer_value(j);
    return json_is_integer(j) && *out >= 0 && *out <= most;
}

static enum status read_shape(const struct safetensors *s, struct tensor *t, const json_t *shape,
                              struct err *e)
{
    const size_t rank = json_array_size(shape);

    if (!json_is_array(shape) || rank > TENSOR_RANK)
        return safetensors_fail(s, e,
                                "tensor \"%s\": shape is not a list of 0 to %d sizes" NOT_OURS,
                                t->name, TENSOR_RANK);
    t->rank = (int)rank;
    t->n = 1;
    for (size_t d = 0; d < rank; d++) {
        json_int_t size;
        if (!read_integer(json_array_get(shape, d), INT_MAX, &size))
            return safetensors_fail(s, e,
                                    "tensor \"%s\": size %zu of its shape is not in 0..%d" NOT_OURS,
                                    t->name, d, INT_MAX);
        if (__builtin_mul_overflow(t->n, (size_t)size, &t->n) || t->n > SIZE_MAX / sizeof(double))
            return safetensors_fail(
                s, e, "tensor \"%s\": the product of its shape overflows" NOT_OURS, t->name);
        t->shape[d] = (int)size;
    }
    return OK;
}

/* Of a file of ours only those that are read as they lie; the last row is any other. */
static const struct type *type_of(const struct safetensors *s, const char *name)
{
    const struct type *t = types;

    while (*t->name && strcmp(t->name, name) != 0)
        t++;
    return s->published || t->dtype <= DTYPE_I32 ? t : NULL;
}

/* One header entry. */
static enum status read_tensor(const struct safetensors *s, struct tensor *t, struct span *span,
                               const char *name, const json_t *entry, struct err *e)
{
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    const json_t *offsets = json_object_get(entry, "data_offsets");
    json_int_t begin, end;

    if (strlen(name) >= TENSOR_NAME)
        return safetensors_fail(s, e,
                                "tensor \"%.32s...\": its name has %zu bytes  -> use at most %d",
                                name, strlen(name), TENSOR_NAME - 1);
    strcpy(t->name, name);
    if (!dtype)
        return safetensors_fail(s, e, "tensor \"%s\" has no dtype" NOT_OURS, name);
    const struct type *const type = type_of(s, dtype);
    if (!type)
        return safetensors_fail(s, e, "tensor \"%s\" has dtype %.32s  -> convert it to F32 or I32",
                                name, dtype);
    t->dtype = type->dtype;
    snprintf(t->dtype_name, sizeof(t->dtype_name), "%s", dtype);
    TRY(read_shape(s, t, json_object_get(entry, "shape"), e));
    if (json_array_size(offsets) != 2 ||
        !read_integer(json_array_get(offsets, 0), INT64_MAX, &begin) ||
        !read_integer(json_array_get(offsets, 1), INT64_MAX, &end) || end < begin)
        return safetensors_fail(s, e, "tensor \"%s\": data_offsets are not [begin, end]" NOT_OURS,
                                name);
    if (type->bytes && (size_t)(end - begin) != t->n * type->bytes)
        return safetensors_fail(
            s, e, "tensor \"%s\": shape needs %zu bytes, data_offsets give %zu" NOT_OURS, name,
            t->n * type->bytes, (size_t)(end - begin));
    t->bytes = (size_t)(end - begin);
    *span = (struct span){(size_t)begin, (size_t)end, t};
    return OK;
}

static int by_begin(const void *a, const void *b)
{
    const struct span *const x = a, *const y = b;

    return x->begin != y->begin ? (x->begin > y->begin) - (x->begin < y->begin)
                                : (x->end > y->end) - (x->end < y->end);
}

/* The tensors lie back to back from byte `data_at` of the file to its end. Sorts them. */
static enum status place_tensors(const struct safetensors *s, struct span *spans, size_t data_at,
                                 struct err *e)
{
    size_t at = 0;

    qsort(spans, (size_t)s->n_tensors, sizeof(*spans), by_begin);
    for (int i = 0; i < s->n_tensors; i++) {
        if (spans[i].begin != at)
            return safetensors_fail(s, e,
                                    "tensor \"%s\" begins at %zu, the one before it ends at %zu"
                                    "  -> store tensors back to back",
                                    spans[i].tensor->name, spans[i].begin, at);
        at = spans[i].end;
    }
    if (data_at + at != s->size)
        return safetensors_fail(s, e, "header says %zu bytes, file has %zu  -> give the whole file",
                                data_at + at, s->size);
    if (s->n_tensors > 0 && !s->published && data_at % ELEMENT_BYTES != 0)
        return safetensors_fail(s, e,
                                "data begins at byte %zu, not a multiple of %d"
                                "  -> pad the header with spaces to a multiple of 8",
                                data_at, ELEMENT_BYTES);
    for (int i = 0; i < s->n_tensors; i++)
        spans[i].tensor->data = s->map + data_at + spans[i].begin;
    return OK;
}

static enum status read_meta(struct safetensors *s, json_t *meta, struct err *e)
{
    const size_t n = json_object_size(meta);
    const char *key;
    json_t *value;
    int i = 0;

    if (!json_is_object(meta))
        return safetensors_fail(s, e, SAFETENSORS_META " is not an object" NOT_OURS);
    s->meta = need_room(2 * n + 1, sizeof(*s->meta));
    s->asked_meta = need_room(n + 1, sizeof(*s->asked_meta));
    s->n_meta = (int)n;
    json_object_foreach(meta, key, value)
    {
        if (!json_is_string(value))
            return safetensors_fail(s, e, "metadata \"%.64s\" is not a string" NOT_OURS, key);
        s->meta[i++] = need_text("%s", key);
        s->meta[i++] = need_text("%s", json_string_value(value));
    }
    return OK;
}

/* Tensors and metadata, and where the tensors lie. */
static enum status read_entries(struct safetensors *s, struct span *spans, json_t *header,
                                struct err *e)
{
    const char *name;
    json_t *entry;

    json_object_foreach(header, name, entry)
    {
        const int n = s->n_tensors;
        if (strcmp(name, SAFETENSORS_META) == 0)
            TRY(read_meta(s, entry, e));
        else
            TRY(read_tensor(s, &s->tensors[s->n_tensors++], &spans[n], name, entry, e));
    }
    return OK;
}

/* From the parsed header; data begins at byte `data_at` of the file. */
static enum status read_all(struct safetensors *s, json_t *header, size_t data_at, struct err *e)
{
    if (!json_is_object(header))
        return safetensors_fail(s, e, "header is not a JSON object" NOT_OURS);
    s->tensors = need_room(json_object_size(header) + 1, sizeof(*s->tensors));
    s->asked_tensor = need_room(json_object_size(header) + 1, sizeof(*s->asked_tensor));
    struct span *const spans = need_room(json_object_size(header) + 1, sizeof(*spans));
    enum status st = read_entries(s, spans, header, e);
    if (st == OK)
        st = place_tensors(s, spans, data_at, e);
    free(spans);
    return st;
}

static enum status read_header(struct safetensors *s, struct err *e)
{
    uint64_t length;
    json_error_t why;

    if (s->size < LENGTH_FIELD)
        return safetensors_fail(s, e, "not a safetensors file: %zu bytes are too few" NOT_OURS,
                                s->size);
    memcpy(&length, s->map, sizeof(length));
    length = le64toh(length);
    if (is_lfs_pointer(s->map, s->size))
        return safetensors_fail(s, e, LFS_POINTER_SAYS);
    if (length > HEADER_MAX)
        return safetensors_fail(s, e,
                                "not a safetensors file: header of %llu bytes, the limit is %d  -> "
                                "give a safetensors file",
                                (unsigned long long)length, HEADER_MAX);
    if (length > s->size - LENGTH_FIELD)
        return safetensors_fail(s, e, "header says %zu bytes, file has %zu  -> give the whole file",
                                (size_t)length + LENGTH_FIELD, s->size);

    json_t *header = json_read((const char *)s->map + LENGTH_FIELD, (size_t)length,
                               JSON_REJECT_DUPLICATES, &why);
    if (!header && errno == ENOMEM)
        return no_memory(s->path, e);
    if (!header)
        return safetensors_fail(s, e, "header is not JSON at its byte %d: %s" NOT_OURS,
                                why.position, why.text);
    const enum status st = read_all(s, header, LENGTH_FIELD + (size_t)length, e);
    json_decref(header);
    return st;
}

static enum status map_file(struct safetensors *s, struct err *e)
{
    struct stat info;
    enum status st = OK;
    /* Without O_NONBLOCK, opening a FIFO would wait for its writer. */
    const int fd = open(s->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &info) != 0) {
        st = safetensors_fail(s, e, "cannot open: %s  -> check the path", strerror(errno));
        goto out;
    }
    if (!S_ISREG(info.st_mode)) {
        st = safetensors_fail(s, e, "not a regular file  -> give the path of a file");
        goto out;
    }
    s->size = (size_t)info.st_size;
    if (s->size == 0) {
        st = safetensors_fail(s, e, "is empty: 0 bytes are too few  -> give the whole file");
        goto out;
    }
    void *map = mmap(NULL, s->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        st = safetensors_fail(s, e, "cannot map %zu bytes: %s  -> free some memory", s->size,
                              strerror(errno));
    else
        s->map = map;
out:
    if (fd >= 0)
        close(fd);
    return st;
}

enum status safetensors_map(struct safetensors *s, const char *path, struct err *e)
{
    *s = (struct safetensors){.path = need_text("%s", path), .published = true};
    return map_file(s, e);
}

static enum status open_as(struct safetensors *s, const char *path, bool published, struct err *e)
{
    *s = (struct safetensors){.path = need_text("%s", path), .published = published};
    enum status st = map_file(s, e);
    if (st == OK)
        st = read_header(s, e);
    if (st != OK)
        safetensors_close(s);
    return st;
}

enum status safetensors_open(struct safetensors *s, const char *path, struct err *e)
{
    return open_as(s, path, false, e);
}

enum status safetensors_open_published(struct safetensors *s, const char *path, struct err *e)
{
    return open_as(s, path, true, e);
}

void safetensors_close(struct safetensors *s)
{
    if (s->map)
        munmap((void *)s->map, s->size);
    for (int i = 0; i < 2 * s->n_meta; i++)
        free(s->meta[i]);
    free(s->meta);
    free(s->tensors);
    free(s->asked_meta);
    free(s->asked_tensor);
    free(s->path);
    *s = (struct safetensors){0};
}

/* ---- lookup ------------------------------------------------------------------------------- */

const struct tensor *safetensors_find(const struct safetensors *s, const char *name)
{
    for (int i = 0; i < s->n_tensors; i++)
        if (strcmp(s->tensors[i].name, name) == 0) {
            if (s->asked_tensor)
                s->asked_tensor[i] = true;
            return &s->tensors[i];
        }
    return NULL;
}

const char *safetensors_meta(const struct safetensors *s, const char *key)
{
    char *const *pair = s->meta;

    for (int i = 0; i < s->n_meta; i++, pair += 2)
        if (strcmp(pair[0], key) == 0) {
            if (s->asked_meta)
                s->asked_meta[i] = true;
            return pair[1];
        }
    return NULL;
}

/* The JSON number that spans all of `text`, or NULL; errno is ENOMEM for want of memory. JSON's
 * grammar is strict and independent of the locale; white space around the number is refused here.
 */
static json_t *number(const char *text, size_t flags)
{
    const size_t n = strlen(text);

    errno = 0;
    if (n == 0 || !(text[0] == '-' || isdigit((unsigned char)text[0])) ||
        !isdigit((unsigned char)text[n - 1]))
        return NULL;
    return json_read(text, n, flags | JSON_DECODE_ANY, NULL);
}

enum status safetensors_i64(const struct safetensors *s, const char *key, int64_t fallback,
                            int64_t lo, int64_t hi, int64_t *out, struct err *e)
{
    const char *text = safetensors_meta(s, key);

    *out = fallback;
    if (!text)
        return OK;
    json_t *j = number(text, 0);
    if (!j && errno == ENOMEM)
        return no_memory(s->path, e);
    const json_int_t value = json_integer_value(j);
    const bool fits = json_is_integer(j) && value >= lo && value <= hi;
    json_decref(j);
    if (!fits)
        return safetensors_fail(
            s, e, "metadata %s is \"%.64s\"  -> it must be a whole number in %" PRId64 "..%" PRId64,
            key, text, lo, hi);
    *out = value;
    return OK;
}

enum status safetensors_int(const struct safetensors *s, const char *key, int fallback, int lo,
                            int hi, int *out, struct err *e)
{
    int64_t value;
    const enum status st = safetensors_i64(s, key, fallback, lo, hi, &value, e);

    *out = (int)value;
    return st;
}

enum status safetensors_real(const struct safetensors *s, const char *key, double fallback,
                             double *out, struct err *e)
{
    const char *text = safetensors_meta(s, key);

    *out = fallback;
    if (!text)
        return OK;
    json_t *j = number(text, JSON_DECODE_INT_AS_REAL);
    if (!j && errno == ENOMEM)
        return no_memory(s->path, e);
    if (!j)
        return safetensors_fail(s, e, "metadata %s is \"%.64s\"  -> it must be a finite number",
                                key, text);
    *out = json_real_value(j);
    json_decref(j);
    return OK;
}

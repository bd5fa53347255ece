/* SPDX-License-Identifier: MIT
 *
 * Reading GGUF. Nothing in a file is trusted: each length is compared with the bytes that are left
 * before anything of it is read. */
#include "gguf.h"

#include "json_text.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MAGIC_BYTES = 4,
    VERSION_FIRST = 2,
    VERSION_LAST = 3,
    USUAL_ALIGNMENT = 32,
    MOST_TENSORS = 100000,
    MOST_KEYS = 10000
};

static const char magic[] = "GGUF";

/* Types of tensors, by their numbers in files. */
static const struct type {
    uint32_t id;
    const char *name;
    enum dtype dtype;
} types[] = {
    {0, "F32", DTYPE_F32},        {1, "F16", DTYPE_F16},        {2, "Q4_0", DTYPE_Q4_0},
    {3, "Q4_1", DTYPE_Q4_1},      {6, "Q5_0", DTYPE_Q5_0},      {7, "Q5_1", DTYPE_Q5_1},
    {8, "Q8_0", DTYPE_Q8_0},      {10, "Q2_K", DTYPE_Q2_K},     {11, "Q3_K", DTYPE_Q3_K},
    {12, "Q4_K", DTYPE_Q4_K},     {13, "Q5_K", DTYPE_Q5_K},     {14, "Q6_K", DTYPE_Q6_K},
    {20, "IQ4_NL", DTYPE_IQ4_NL}, {23, "IQ4_XS", DTYPE_IQ4_XS}, {30, "BF16", DTYPE_BF16},
    {39, "MXFP4", DTYPE_MXFP4},
};

/* Types of values. */
enum value {
    VALUE_U8,
    VALUE_I8,
    VALUE_U16,
    VALUE_I16,
    VALUE_U32,
    VALUE_I32,
    VALUE_F32,
    VALUE_BOOL,
    VALUE_TEXT,
    VALUE_ARRAY,
    VALUE_U64,
    VALUE_I64,
    VALUE_F64,
    VALUE_COUNT
};

/* A place in the file. The first error sticks; later reads give 0. */
struct reader {
    const struct safetensors *s;
    size_t at;
    enum status st;
    struct err *e;
};

static void stop(struct reader *r, const char *what)
{
    if (r->st == OK)
        r->st = safetensors_fail(r->s, r->e, "%s  -> give the whole file", what);
}

/* The next n bytes; NULL where they are not there. */
static const unsigned char *take(struct reader *r, uint64_t n)
{
    if (r->st == OK && n > r->s->size - r->at)
        stop(r, "ends before its header does");
    if (r->st != OK)
        return NULL;
    r->at += (size_t)n;
    return r->s->map + r->at - n;
}

static uint64_t take_number(struct reader *r, int bytes)
{
    const unsigned char *const from = take(r, (uint64_t)bytes);
    uint64_t x = 0;

    for (int i = 0; from && i < bytes; i++)
        x |= (uint64_t)from[i] << 8 * i;
    return x;
}

static uint32_t take_u32(struct reader *r) { return (uint32_t)take_number(r, 4); }
static uint64_t take_u64(struct reader *r) { return take_number(r, 8); }

/* A text, its length in *n. */
static const char *take_text(struct reader *r, size_t *n)
{
    *n = (size_t)take_u64(r);
    return (const char *)take(r, *n);
}

/* ---- keys and values ---------------------------------------------------------------------- */

static json_t *read_text(struct reader *r)
{
    size_t n;
    const char *const text = take_text(r, &n);

    /* words of vocabularies may be parts of characters: those become lists of bytes */
    json_t *value = text ? json_stringn(text, n) : json_null();
    if (!value) {
        value = json_array();
        for (size_t i = 0; text && i < n; i++)
            json_array_append_new(value, json_integer((unsigned char)text[i]));
    }
    return value;
}

static json_t *read_real(struct reader *r, int bytes)
{
    const uint64_t bits = take_number(r, bytes);
    const uint32_t low = (uint32_t)bits;
    double x;
    float narrow;

    memcpy(&x, &bits, sizeof(x));
    memcpy(&narrow, &low, sizeof(narrow));
    x = bytes == (int)sizeof(narrow) ? (double)narrow : x;
    return isfinite(x) ? json_real(x) : json_null();
}

/* A whole number of so many bytes, with a sign or without. */
static json_t *read_integer(struct reader *r, int bytes, bool has_sign)
{
    const uint64_t x = take_number(r, bytes), top = (uint64_t)1 << (8 * bytes - 1);

    if (has_sign)
        return json_integer((json_int_t)((x ^ top) - top));
    return x <= INT64_MAX ? json_integer((json_int_t)x) : json_null();
}

static json_t *read_scalar(struct reader *r, uint32_t type)
{
    switch (type) {
    case VALUE_U8:
    case VALUE_I8:
        return read_integer(r, 1, type == VALUE_I8);
    case VALUE_U16:
    case VALUE_I16:
        return read_integer(r, 2, type == VALUE_I16);
    case VALUE_U32:
    case VALUE_I32:
        return read_integer(r, 4, type == VALUE_I32);
    case VALUE_U64:
    case VALUE_I64:
        return read_integer(r, 8, type == VALUE_I64);
    case VALUE_F32:
        return read_real(r, 4);
    case VALUE_F64:
        return read_real(r, 8);
    case VALUE_BOOL:
        return json_boolean(take_number(r, 1) != 0);
    case VALUE_TEXT:
        return read_text(r);
    default:
        stop(r, "has a value of an unknown type, or lists in lists");
        return json_null();
    }
}

static json_t *read_value(struct reader *r, uint32_t type)
{
    if (type != VALUE_ARRAY)
        return read_scalar(r, type);
    const uint32_t of = take_u32(r);
    const uint64_t n = take_u64(r);
    json_t *const list = json_array();

    if (r->st == OK && n > r->s->size - r->at)
        stop(r, "has a list that is longer than the file");
    for (uint64_t i = 0; r->st == OK && i < n; i++)
        if (json_array_append_new(list, read_scalar(r, of)) != 0)
            stop(r, "has a list that cannot be read");
    return list;
}

static void read_keys(struct reader *r, json_t *keys, uint64_t n)
{
    if (n > MOST_KEYS)
        stop(r, "has more keys than any model");
    for (uint64_t i = 0; r->st == OK && i < n; i++) {
        size_t length;
        const char *const name = take_text(r, &length);
        char key[TENSOR_NAME] = "";
        if (name && length < sizeof(key))
            memcpy(key, name, length);
        else if (name)
            stop(r, "has a key that is longer than any");
        if (r->st == OK && json_object_get(keys, key))
            stop(r, "has a key twice");
        if (json_object_set_new(keys, key, read_value(r, take_u32(r))) != 0)
            stop(r, "has a key that cannot be read");
    }
}

/* ---- tensors ------------------------------------------------------------------------------ */

static const struct type *type_find(uint32_t id)
{
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (types[i].id == id)
            return &types[i];
    return NULL;
}

/* Files have the axis of the columns first. Returns where its numbers begin, from that of all. */
static uint64_t read_tensor(struct reader *r, struct tensor *t)
{
    size_t length;
    const char *const name = take_text(r, &length);

    if (name && length < sizeof(t->name))
        memcpy(t->name, name, length);
    else
        stop(r, "has a tensor whose name is longer than any");
    t->rank = (int)take_u32(r);
    if (r->st == OK && (t->rank < 1 || t->rank > TENSOR_RANK))
        stop(r, "has a tensor of no rank from 1 to 4");
    t->n = 1;
    for (int d = t->rank - 1; r->st == OK && d >= 0; d--) {
        const uint64_t n = take_u64(r);
        if (n < 1 || n > INT32_MAX || t->n > r->s->size * TENSOR_RANK / n)
            stop(r, "has a tensor that is larger than the file");
        t->shape[d] = (int)n;
        t->n *= (size_t)n;
    }
    const uint32_t id = take_u32(r);
    const struct type *const type = type_find(id);
    t->dtype = type ? type->dtype : DTYPE_OTHER;
    snprintf(t->dtype_name, sizeof(t->dtype_name), "%s", type ? type->name : "");
    if (!type)
        snprintf(t->dtype_name, sizeof(t->dtype_name), "type %u", id);
    return take_u64(r);
}

/* Numbers of types that are not read may be of any length. */
static void place_tensor(struct reader *r, struct tensor *t, size_t from, uint64_t offset,
                         uint64_t alignment)
{
    const size_t bytes = t->dtype == DTYPE_OTHER ? 1 : tensor_bytes(t->dtype, t->n);
    const int per_row = t->shape[t->rank - 1];

    if (r->st == OK && t->dtype != DTYPE_OTHER && per_row % tensor_block(t->dtype))
        stop(r, "has a tensor whose rows are no whole blocks");
    if (r->st == OK &&
        (offset % alignment || offset > r->s->size - from || bytes > r->s->size - from - offset))
        stop(r, "has a tensor that is not in it");
    if (r->st == OK)
        t->data = r->s->map + from + offset;
}

static void read_tensors(struct reader *r, struct safetensors *s, uint64_t n, uint64_t alignment)
{
    struct tensor *const t = s->tensors = calloc((size_t)n + 1, sizeof(*s->tensors));
    uint64_t *const offset = calloc((size_t)n + 1, sizeof(*offset));

    if (!t || !offset) {
        r->st = fail(r->e, E_NOMEM, "checkpoint %s: no memory  -> free some", s->path);
        free(offset);
        return;
    }
    for (uint64_t i = 0; r->st == OK && i < n; i++)
        offset[i] = read_tensor(r, &t[i]);
    const size_t from = r->at + (size_t)((alignment - r->at % alignment) % alignment);
    if (r->st == OK && n > 0 && from > s->size)
        stop(r, "ends before its tensors begin");
    for (uint64_t i = 0; r->st == OK && i < n; i++)
        place_tensor(r, &t[i], from, offset[i], alignment);
    s->n_tensors = r->st == OK ? (int)n : 0;
    free(offset);
}

/* ---- files -------------------------------------------------------------------------------- */

bool gguf_is(const char *path)
{
    char begin[MAGIC_BYTES] = "";
    FILE *const f = fopen(path, "rb");
    const bool is = f && fread(begin, 1, sizeof(begin), f) == sizeof(begin) &&
                    memcmp(begin, magic, sizeof(begin)) == 0;

    if (f)
        fclose(f);
    return is;
}

static void read_all(struct reader *r, struct safetensors *s, json_t *keys)
{
    const unsigned char *const begin = take(r, MAGIC_BYTES);

    if (r->st == OK && memcmp(begin, magic, MAGIC_BYTES) != 0)
        stop(r, "does not begin as GGUF");
    const uint32_t version = take_u32(r);
    if (r->st == OK && (version < VERSION_FIRST || version > VERSION_LAST))
        r->st =
            safetensors_fail(s, r->e, "is GGUF of version %u  -> convert it to version 3", version);
    const uint64_t n_tensors = take_u64(r), n_keys = take_u64(r);
    if (r->st == OK && n_tensors > MOST_TENSORS)
        stop(r, "has more tensors than any model");
    read_keys(r, keys, n_keys);
    const json_t *const said = json_object_get(keys, "general.alignment");
    const json_int_t alignment = said ? json_integer_value(said) : USUAL_ALIGNMENT;
    if (r->st == OK && (alignment < 1 || alignment > 1 << 20))
        stop(r, "has an alignment that is none");
    if (r->st == OK)
        read_tensors(r, s, n_tensors, (uint64_t)alignment);
}

enum status gguf_open(struct safetensors *s, json_t **keys, const char *path, struct err *e)
{
    *keys = json_object();
    *s = (struct safetensors){.published = true};
    enum status st = *keys ? safetensors_map(s, path, e)
                           : fail(e, E_NOMEM, "checkpoint %s: no memory  -> free some", path);
    struct reader r = {.s = s, .st = st, .e = e};
    if (st == OK)
        read_all(&r, s, *keys);
    if (r.st == OK)
        return OK;
    safetensors_close(s);
    json_decref(*keys);
    *keys = NULL;
    return r.st;
}

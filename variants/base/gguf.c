/* SPDX-License-Identifier: MIT
 *
 * Reading GGUF. Nothing in a file is trusted: each length is compared with the bytes that are left
 * before anything of it is read. */
#include "gguf.h"

#include "half.h"

#include <endian.h>

enum {
    MAGIC_BYTES = 4,
    VERSION_FIRST = 2,
    VERSION_LAST = 3,
    USUAL_ALIGNMENT = 32,
    MOST_TENSORS = 100000,
    MOST_KEYS = 10000,
    LONGEST_KEY = 65535, /* bytes, by the format */
    GGUF_RANK = 4,       /* likewise */
    DEEPEST_LIST = 8,
    MOST_NUMBERS = 8 /* in a byte of any type, read or not */
};

#define WHOLE "  -> give the whole file"
#define AGAIN "  -> convert it again"

static const char magic[] = "GGUF";

/* Types of tensors, by their numbers in files; those that are not read have a name for messages. */
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
    {39, "MXFP4", DTYPE_MXFP4},   {15, "Q8_K", DTYPE_OTHER},    {16, "IQ2_XXS", DTYPE_OTHER},
    {17, "IQ2_XS", DTYPE_OTHER},  {18, "IQ3_XXS", DTYPE_OTHER}, {19, "IQ1_S", DTYPE_OTHER},
    {21, "IQ3_S", DTYPE_OTHER},   {22, "IQ2_S", DTYPE_OTHER},   {24, "I8", DTYPE_OTHER},
    {25, "I16", DTYPE_OTHER},     {26, "I32", DTYPE_OTHER},     {27, "I64", DTYPE_OTHER},
    {28, "F64", DTYPE_OTHER},     {29, "IQ1_M", DTYPE_OTHER},   {34, "TQ1_0", DTYPE_OTHER},
    {35, "TQ2_0", DTYPE_OTHER},
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

static void stop(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void stop(struct reader *r, const char *fmt, ...)
{
    char what[sizeof(r->e->msg)];

    if (r->st != OK)
        return;
    VPRINT(what, sizeof(what), fmt);
    r->st = safetensors_fail(r->s, r->e, "%s", what);
}

/* The next n bytes; NULL where they are not there. */
static const unsigned char *take(struct reader *r, uint64_t n)
{
    if (n > r->s->size - r->at)
        stop(r, "ends before its header does" WHOLE);
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
    double x;

    memcpy(&x, &bits, sizeof(x));
    x = bytes == (int)sizeof(float) ? (double)float_of_bits((uint32_t)bits) : x;
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
        stop(r, "has a value of type %u, which GGUF does not have" AGAIN, type);
        return json_null();
    }
}

/* Begin a list whose values follow. */
struct list {
    json_t *values;
    uint32_t of;   /* their type */
    uint64_t left; /* to be read */
};
static struct list read_list(struct reader *r, json_t *values)
{
    struct list list = {values, take_u32(r), 0};

    list.left = take_u64(r);
    if (list.left > r->s->size - r->at)
        stop(r, "has a list that is longer than the file" WHOLE);
    return list;
}

/* A value, which may be lists in lists. */
static json_t *read_value(struct reader *r, uint32_t type)
{
    struct list open[DEEPEST_LIST];
    json_t *first = NULL;

    for (int n = 0;;) {
        json_t *const value = type == VALUE_ARRAY ? json_array() : read_scalar(r, type);
        if (n == 0)
            first = value;
        else
            json_array_append_new(open[n - 1].values, value);
        if (type == VALUE_ARRAY && n == DEEPEST_LIST)
            stop(r, "has more than %d lists in each other: not supported" AGAIN, DEEPEST_LIST);
        if (r->st == OK && type == VALUE_ARRAY)
            open[n++] = read_list(r, value);
        while (n > 0 && open[n - 1].left == 0)
            n--;
        if (r->st != OK || n == 0)
            return first;
        open[n - 1].left--;
        type = open[n - 1].of;
    }
}

/* A copy that ends with a zero byte, to be freed; NULL where it is none, and the reader has
 * stopped. */
static char *read_name(struct reader *r)
{
    size_t n;
    const char *const name = take_text(r, &n);
    char *copy = NULL;

    if (name && n > LONGEST_KEY)
        stop(r, "has a name of %zu bytes, the format allows %d" WHOLE, n, LONGEST_KEY);
    else if (name && memchr(name, '\0', n))
        stop(r, "has a zero byte in the name \"%.40s\"" AGAIN, name);
    else if (name)
        copy = need_text("%.*s", (int)n, name);
    return copy;
}

static void read_key(struct reader *r, json_t *keys)
{
    char *const key = read_name(r);

    if (!key)
        return;
    json_t *const text = json_string(key), *const value = read_value(r, take_u32(r));
    if (!text)
        stop(r, "has the key \"%.40s\", which is not UTF-8" AGAIN, key);
    else if (json_object_get(keys, key))
        stop(r, "has the key \"%.40s\" twice" AGAIN, key);
    else
        json_object_set(keys, key, value);
    json_decref(value);
    json_decref(text);
    free(key);
}

static void read_keys(struct reader *r, json_t *keys, uint64_t n)
{
    if (n > MOST_KEYS)
        stop(r, "has %llu keys, more than any model" WHOLE, (unsigned long long)n);
    for (uint64_t i = 0; r->st == OK && i < n; i++)
        read_key(r, keys);
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
    char *const name = read_name(r);

    if (name && strlen(name) >= sizeof(t->name))
        stop(r, "has the tensor \"%.40s...\", a name of more than %zu bytes: not supported" AGAIN,
             name, sizeof(t->name) - 1);
    else if (name)
        memcpy(t->name, name, strlen(name) + 1);
    free(name);
    const uint32_t rank = take_u32(r);
    if (rank < 1 || rank > GGUF_RANK)
        stop(r, "has the tensor \"%s\" of %u axes: not from 1 to %d" AGAIN, t->name, rank,
             GGUF_RANK);
    t->rank = r->st == OK ? (int)rank : 0;
    t->n = 1;
    for (int d = t->rank - 1; r->st == OK && d >= 0; d--) {
        const uint64_t n = take_u64(r);
        if (n == 0)
            stop(r, "has the tensor \"%s\" without elements: not supported" AGAIN, t->name);
        else if (r->st == OK && (n > INT32_MAX || t->n > r->s->size * MOST_NUMBERS / n))
            stop(r, "has the tensor \"%s\", which is larger than the file" WHOLE, t->name);
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

    if (t->dtype != DTYPE_OTHER && per_row % tensor_block(t->dtype))
        stop(r, "has the tensor \"%s\" of %s, whose rows of %d are not whole blocks of %d" AGAIN,
             t->name, t->dtype_name, per_row, tensor_block(t->dtype));
    if (offset % alignment)
        stop(r, "has the tensor \"%s\" at %llu, no multiple of general.alignment, %llu" AGAIN,
             t->name, (unsigned long long)offset, (unsigned long long)alignment);
    if ((offset > r->s->size - from || bytes > r->s->size - from - offset))
        stop(r, "ends before its tensor \"%s\" does" WHOLE, t->name);
    if (r->st == OK)
        t->data = r->s->map + from + offset;
    t->bytes = t->dtype == DTYPE_OTHER ? 0 : bytes;
}

static void read_tensors(struct reader *r, struct safetensors *s, uint64_t n, uint64_t alignment)
{
    struct tensor *const t = s->tensors = need_room((size_t)n + 1, sizeof(*s->tensors));
    uint64_t *const offset = need_room((size_t)n + 1, sizeof(*offset));

    s->listed = r->at;
    s->alignment = (size_t)alignment;
    for (uint64_t i = 0; r->st == OK && i < n; i++)
        offset[i] = read_tensor(r, &t[i]);
    const size_t from = r->at + (size_t)((alignment - r->at % alignment) % alignment);
    if (n > 0 && from > s->size)
        stop(r, "ends before its tensors begin" WHOLE);
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
        stop(r, "does not begin as GGUF" WHOLE);
    const uint32_t version = take_u32(r), turned = __builtin_bswap32(version);
    if (turned >= VERSION_FIRST && turned <= VERSION_LAST)
        stop(r, "is big-endian GGUF of version %u: not supported  -> convert it to little-endian",
             turned);
    if (version < VERSION_FIRST || version > VERSION_LAST)
        stop(r, "is GGUF of version %u  -> convert it to version %d", version, VERSION_LAST);
    const uint64_t n_tensors = take_u64(r), n_keys = take_u64(r);
    if (n_tensors > MOST_TENSORS)
        stop(r, "has %llu tensors, more than any model" WHOLE, (unsigned long long)n_tensors);
    read_keys(r, keys, n_keys);
    const json_t *const said = json_object_get(keys, "general.alignment");
    const json_int_t alignment = said ? json_integer_value(said) : USUAL_ALIGNMENT;
    if ((alignment < 1 || alignment > 1 << 20))
        stop(r, "has a general.alignment that is not a number from 1 to %d" AGAIN, 1 << 20);
    if (r->st == OK)
        read_tensors(r, s, n_tensors, (uint64_t)alignment);
}

enum status gguf_open(struct safetensors *s, json_t **keys, const char *path, struct err *e)
{
    *keys = json_object();
    *s = (struct safetensors){.published = true};
    struct reader r = {.s = s, .st = safetensors_map(s, path, e), .e = e};
    if (r.st == OK)
        read_all(&r, s, *keys);
    if (r.st == OK)
        return OK;
    safetensors_close(s);
    json_decref(*keys);
    *keys = NULL;
    return r.st;
}

/* ---- writing ------------------------------------------------------------------------------ */

/* The list of tensors of a file, with the types and places of others. */
struct again {
    const struct safetensors *like;
    const struct tensor *tensors;
    unsigned char *list;
    size_t n; /* bytes of the list */
};

/* Entries keep their lengths. */
static void make_list(struct again *a)
{
    const struct safetensors *const s = a->like;
    struct reader r = {.s = s, .at = s->listed, .e = &(struct err){""}};
    struct tensor ignored;
    uint64_t offset = 0;

    for (int i = 0; i < s->n_tensors; i++)
        read_tensor(&r, &ignored);
    CHECK(r.st == OK);
    a->n = r.at - s->listed;
    a->list = need_room(a->n + 1, 1);
    memcpy(a->list, s->map + s->listed, a->n);
    r.at = s->listed;
    for (int i = 0; i < s->n_tensors; i++) {
        const struct tensor *const t = &a->tensors[i];
        read_tensor(&r, &ignored);
        unsigned char *const end = a->list + (r.at - s->listed);
        if (t->dtype == DTYPE_F32)
            memset(end - 12, 0, 4); /* its number in `types` */
        memcpy(end - 8, &(uint64_t){htole64(offset)}, 8);
        offset += round_up(t->bytes, s->alignment);
    }
}

static bool put(FILE *f, const void *bytes, size_t n, size_t padded)
{
    bool ok = n == 0 || fwrite(bytes, n, 1, f) == 1;

    for (; ok && n < padded; n++)
        ok = fputc(0, f) == 0;
    return ok;
}

static bool put_all(FILE *f, const void *arg)
{
    const struct again *const a = arg;
    const struct safetensors *const s = a->like;
    bool ok = put(f, s->map, s->listed, s->listed) &&
              put(f, a->list, a->n, round_up(s->listed + a->n, s->alignment) - s->listed);

    for (int i = 0; ok && i < s->n_tensors; i++)
        ok = put(f, a->tensors[i].data, a->tensors[i].bytes,
                 round_up(a->tensors[i].bytes, s->alignment));
    return ok;
}

int gguf_write(const char *path, const struct safetensors *like, const struct tensor *tensors)
{
    struct again a = {.like = like, .tensors = tensors};

    make_list(&a);
    const int why = half_write(path, put_all, &a);
    free(a.list);
    return why;
}

/* SPDX-License-Identifier: MIT
 *
 * Reading GGUF: a small file with every type of value, whole, cut short anywhere, and with any byte
 * changed. */
#include "tests/support/gguf_file.h"
#include "variants/base/gguf.h"

TestSuite(gguf, .init = folder_make, .fini = folder_remove, .timeout = 120);

/* ---- a file ------------------------------------------------------------------------------- */

static void put_tensor(struct made *m, const char *name, uint32_t rows, uint32_t columns,
                       uint32_t type, uint64_t offset)
{
    put_text(m, name);
    put_number(m, 2, 4);
    put_number(m, columns, 8);
    put_number(m, rows, 8);
    put_number(m, type, 4);
    put_number(m, offset, 8);
}

enum { KEYS = 13, TENSORS = 3, F32 = 0, Q8_0 = 8, IQ2_XXS = 16, AT_Q8_0 = 32, AT_LAST = 128 };

/* One value of each type; numbers of F32, of Q8_0, and of a type that is not read. */
static struct made whole_file(uint32_t version)
{
    struct made m = {.n = 0};
    const float half = 0.5f;
    const double third = 1.0 / 3;
    uint64_t bits;
    uint32_t narrow;

    memcpy(&bits, &third, sizeof(bits)), memcpy(&narrow, &half, sizeof(narrow));
    put(&m, "GGUF", 4);
    put_number(&m, version, 4), put_number(&m, TENSORS, 8), put_number(&m, KEYS, 8);
    put_key(&m, "u8", 0), put_number(&m, 200, 1);
    put_key(&m, "i8", 1), put_number(&m, (uint64_t)-100, 1);
    put_key(&m, "u16", 2), put_number(&m, 60000, 2);
    put_key(&m, "i16", 3), put_number(&m, (uint64_t)-30000, 2);
    put_key(&m, "u32", 4), put_number(&m, 4000000000, 4);
    put_key(&m, "i32", 5), put_number(&m, (uint64_t)-2000000000, 4);
    put_key(&m, "f32", 6), put_number(&m, narrow, 4);
    put_key(&m, "bool", 7), put_number(&m, 1, 1);
    put_key(&m, "text", 8), put_text(&m, "words");
    put_key(&m, "list", 9), put_number(&m, 8, 4), put_number(&m, 2, 8);
    put_text(&m, "one"), put_text(&m, "\xff");
    put_key(&m, "u64", 10), put_number(&m, 1ull << 62, 8);
    put_key(&m, "i64", 11), put_number(&m, (uint64_t)-5, 8);
    put_key(&m, "f64", 12), put_number(&m, bits, 8);
    put_tensor(&m, "plain.weight", 2, 3, F32, 0);
    put_tensor(&m, "blocks.weight", 1, 32, Q8_0, AT_Q8_0);
    put_tensor(&m, "other.weight", 1, 256, IQ2_XXS, AT_LAST);
    put_alignment(&m);
    const size_t data = m.n;
    for (int i = 0; i < 6; i++) {
        const float x = (float)i;
        put(&m, &x, sizeof(x));
    }
    while (m.n < data + AT_Q8_0)
        put_number(&m, 0, 1);
    put_number(&m, 0x3800, 2); /* 1/2 as F16 */
    for (int i = 0; i < 32; i++)
        put_number(&m, (uint64_t)(i - 16), 1);
    while (m.n < data + AT_LAST + 16)
        put_number(&m, 0, 1);
    return m;
}

static enum status open_made(const struct made *m, struct safetensors *s, json_t **keys,
                             struct err *e)
{
    TRY(gguf_open(s, keys, made_file(m), e));
    kept_copy(s, sizeof(*s)), kept(*keys);
    return OK;
}

/* ---- what it says ------------------------------------------------------------------------- */

static json_int_t whole(const json_t *keys, const char *key)
{
    return json_integer_value(json_object_get(keys, key));
}

Test(gguf, every_type_of_value)
{
    const struct made m = whole_file(3);
    struct safetensors s;
    json_t *keys;

    MUST(open_made(&m, &s, &keys, &failure));
    NUMBERS({whole(keys, "u8"), 200}, {whole(keys, "i8"), -100}, {whole(keys, "u16"), 60000},
            {whole(keys, "i16"), -30000}, {whole(keys, "u32"), 4000000000},
            {whole(keys, "i32"), -2000000000}, {json_real_value(json_object_get(keys, "f32")), 0.5},
            {json_real_value(json_object_get(keys, "f64")), 1.0 / 3});
    cr_expect(whole(keys, "u64") == 1ll << 62 && whole(keys, "i64") == -5);
    cr_expect(json_is_true(json_object_get(keys, "bool")));
    cr_expect_str_eq(json_string_value(json_object_get(keys, "text")), "words");
    const json_t *const list = json_object_get(keys, "list");
    cr_expect_str_eq(json_string_value(json_array_get(list, 0)), "one");
    cr_expect_eq(json_integer_value(json_array_get(json_array_get(list, 1), 0)), 0xff,
                 "what is not a text is bytes");
}

Test(gguf, tensors)
{
    const struct made m = whole_file(3);
    struct safetensors s;
    json_t *keys;
    float x[32];

    MUST(open_made(&m, &s, &keys, &failure));
    const struct tensor *const plain = safetensors_find(&s, "plain.weight");
    cr_assert(plain && plain->rank == 2 && plain->shape[0] == 2 && plain->shape[1] == 3);
    tensor_floats(x, plain, 1, 4);
    for (int i = 0; i < 4; i++)
        cr_expect_eq(x[i], (float)(i + 1));
    const struct tensor *const blocks = safetensors_find(&s, "blocks.weight");
    tensor_floats(x, blocks, 0, 32);
    for (int i = 0; i < 32; i++)
        cr_expect_eq(x[i], 0.5f * (float)(i - 16));
    const struct tensor *const other = safetensors_find(&s, "other.weight");
    cr_expect(other && !tensor_is_readable(other->dtype) &&
              strcmp(other->dtype_name, "IQ2_XXS") == 0);
}

/* ---- what is refused ---------------------------------------------------------------------- */

static void expect_refused(const struct made *m, const char *says)
{
    struct safetensors s;
    json_t *keys;

    REFUSED(open_made(m, &s, &keys, &failure), E_IO, says, "  -> ");
    cr_expect_null(keys);
}

Test(gguf, versions)
{
    struct safetensors s;
    json_t *keys;
    struct made m = whole_file(2);

    MUST(open_made(&m, &s, &keys, &failure));
    m = whole_file(1);
    expect_refused(&m, "version 1");
    m = whole_file(3u << 24); /* of a machine with the other order of bytes */
    expect_refused(&m, "big-endian GGUF of version 3");
    m = whole_file(4);
    expect_refused(&m, "version 4");
    m.bytes[0] = 'g';
    expect_refused(&m, "GGUF");
}

/* The last tensor has no bytes of its own: it is not read. */
Test(gguf, cut_short)
{
    const struct made whole = whole_file(3);

    for (size_t n = 0; n + 16 < whole.n; n++) {
        struct made m = whole;
        m.n = n;
        expect_refused(&m, "");
    }
}

/* Any byte, to any of some values: read or refused, and nothing outside of the file. */
Test(gguf, changed_bytes)
{
    static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff};
    const struct made whole = whole_file(3);

    for (size_t i = 0; i < whole.n; i++)
        for (size_t k = 0; k < ARRAY_LEN(values); k++) {
            struct made m = whole;
            struct safetensors s;
            json_t *keys;
            m.bytes[i] = values[k];
            if (open_made(&m, &s, &keys, &failure) != OK)
                continue;
            for (int t = 0; t < s.n_tensors; t++)
                if (tensor_is_readable(s.tensors[t].dtype) && s.tensors[t].n <= 64) {
                    float x[64];
                    tensor_floats(x, &s.tensors[t], 0, s.tensors[t].n);
                }
            json_decref(keys);
            safetensors_close(&s);
        }
}

Test(gguf, sizes_that_are_none)
{
    struct made m = whole_file(3);
    const size_t tensors = 8;

    m.bytes[tensors + 7] = 1;
    expect_refused(&m, "tensors, more than any model");
    m = whole_file(3);
    m.bytes[tensors + 8 + 7] = 1;
    expect_refused(&m, "keys, more than any model");
}

/* ---- what the format allows, and others do not write -------------------------------------- */

/* A key of so many bytes. */
static void put_long_key(struct made *m, char *name, size_t n)
{
    memset(name, 'k', n);
    name[n] = '\0';
    put_key(m, name, 0), put_number(m, 7, 1);
}

Test(gguf, long_keys)
{
    static const size_t lengths[] = {64, 95, 96, 97, 4000, 65535};
    static char name[1 << 17];
    static struct made m;
    struct safetensors s;
    json_t *keys;

    put_begin(&m, 0, ARRAY_LEN(lengths));
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
        put_long_key(&m, name, lengths[i]);
    MUST(open_made(&m, &s, &keys, &failure));
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        memset(name, 'k', lengths[i]);
        name[lengths[i]] = '\0';
        cr_expect_eq(whole(keys, name), 7, "%zu", lengths[i]);
    }
    put_begin(&m, 0, 1);
    put_long_key(&m, name, 65536);
    expect_refused(&m, "65536 bytes");
}

/* [[1, 2], [], [3]], and a list in itself as deep as they are read, and deeper. */
Test(gguf, lists_in_lists)
{
    static const int of[] = {2, 0, 1};
    struct made m;
    struct safetensors s;
    json_t *keys;
    int next = 1;

    put_begin(&m, 0, 2);
    put_key(&m, "nested", 9), put_number(&m, 9, 4), put_number(&m, ARRAY_LEN(of), 8);
    for (size_t i = 0; i < ARRAY_LEN(of); i++) {
        put_number(&m, 0, 4), put_number(&m, (uint64_t)of[i], 8);
        for (int k = 0; k < of[i]; k++)
            put_number(&m, (uint64_t)next++, 1);
    }
    put_key(&m, "behind", 0), put_number(&m, 9, 1);
    MUST(open_made(&m, &s, &keys, &failure));
    char *const text = kept(json_dumps(json_object_get(keys, "nested"), JSON_COMPACT));
    cr_expect_str_eq(text, "[[1,2],[],[3]]");
    cr_expect_eq(whole(keys, "behind"), 9);
    for (int deep = 8; deep <= 9; deep++) {
        put_begin(&m, 0, 1);
        put_key(&m, "deep", 9);
        for (int i = 1; i < deep; i++)
            put_number(&m, 9, 4), put_number(&m, 1, 8);
        put_number(&m, 0, 4), put_number(&m, 0, 8);
        if (deep > 8) {
            expect_refused(&m, "lists in each other");
            continue;
        }
        MUST(open_made(&m, &s, &keys, &failure));
    }
}

/* What is wrong is said, and of which key or tensor. */
Test(gguf, reasons)
{
    struct made m;

    put_begin(&m, 0, 2);
    put_key(&m, "once", 0), put_number(&m, 1, 1);
    put_key(&m, "once", 0), put_number(&m, 1, 1);
    expect_refused(&m, "key \"once\" twice");
    put_begin(&m, 0, 1);
    put_key(&m, "what", 13), put_number(&m, 1, 1);
    expect_refused(&m, "type 13");
    put_begin(&m, 0, 1);
    put_key(&m, "\xff", 0), put_number(&m, 1, 1);
    expect_refused(&m, "not UTF-8");
    put_begin(&m, 0, 1);
    put_number(&m, 3, 8), put(&m, "a\0b", 3), put_number(&m, 0, 4), put_number(&m, 1, 1);
    expect_refused(&m, "zero byte in the name \"a\"");
    put_begin(&m, 0, 1);
    put_key(&m, "general.alignment", 8), put_text(&m, "32");
    expect_refused(&m, "general.alignment");
}

/* One tensor of two axes. */
static struct made one_tensor(const char *name, uint32_t rows, uint32_t columns, uint32_t type,
                              uint64_t offset)
{
    struct made m;

    put_begin(&m, 1, 0);
    put_tensor(&m, name, rows, columns, type, offset);
    put_alignment(&m);
    for (int i = 0; i < 64; i++)
        put_number(&m, 0, 1);
    return m;
}

Test(gguf, reasons_of_tensors)
{
    enum { IQ1_S = 19 };
    static const struct {
        uint32_t rows, columns, type;
        uint64_t offset;
        const char *says; /* NULL: read */
    } cases[] = {
        {2, 8, F32, 0, NULL},
        {2, 0, F32, 0, "\"t\" without elements"},
        {0, 8, F32, 0, "\"t\" without elements"},
        {2, 8, F32, 16, "\"t\" at 16, no multiple of general.alignment, 32"},
        {2, 8, F32, 32, "ends before its tensor \"t\""},
        {3, 8, F32, 0, "ends before its tensor \"t\""},
        {1 << 16, 1 << 16, F32, 0, "\"t\", which is larger than the file"},
        {2, 16, Q8_0, 0, "\"t\" of Q8_0, whose rows of 16 are not whole blocks of 32"},
        {3, 256, IQ1_S, 0, NULL}, /* 5 numbers in a byte */
    };
    char name[120];
    struct made m;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct safetensors s;
        json_t *keys;
        m = one_tensor("t", cases[i].rows, cases[i].columns, cases[i].type, cases[i].offset);
        if (cases[i].says) {
            expect_refused(&m, cases[i].says);
            continue;
        }
        cr_assert_eq(open_made(&m, &s, &keys, &failure), OK, "%zu: %s", i, failure.msg);
    }
    memset(name, 'n', 100), name[100] = '\0';
    m = one_tensor(name, 2, 8, F32, 0);
    expect_refused(&m, "a name of more than 95 bytes");
    m = one_tensor("t", 2, 8, F32, 0);
    m.bytes[24 + 8 + 1] = 5; /* axes */
    expect_refused(&m, "\"t\" of 5 axes");
}

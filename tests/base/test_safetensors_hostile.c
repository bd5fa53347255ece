/* SPDX-License-Identifier: MIT
 *
 * Opening any file as safetensors gives the tensors or one line that names the file and what is
 * wrong in it. */
#include "tests/support/tmp_folder.h"
#include "variants/base/safetensors.h"

static const char name[] = "g.safetensors";
static char path[FILE_PATH];

static void make_path(void)
{
    folder_make();
    folder_path(path, name);
}

TestSuite(safetensors_hostile, .init = make_path, .fini = folder_remove);

/* Length field, header, `data` zero bytes. */
static void put_header(uint64_t length, const char *header, size_t data)
{
    const size_t n = strlen(header), size = sizeof(length) + n + data;
    unsigned char *bytes = room(1, size);
    memcpy(bytes, &length, sizeof(length));
    memcpy(bytes + sizeof(length), header, n);
    folder_put(name, bytes, size);
}

/* `label` names the case when the expectation fails. */
static void expect_refused(const char *part, const char *label)
{
    struct safetensors s;
    struct err e = {""};

    cr_expect_eq(safetensors_open(&s, path, &e), E_IO, "%s was accepted", label);
    cr_expect_not_null(strstr(e.msg, path), "%s: \"%s\" does not name the file", label, e.msg);
    cr_expect_not_null(strstr(e.msg, part), "%s: \"%s\" does not say %s", label, e.msg, part);
    cr_expect_null(strpbrk(e.msg, "\n\r\033"), "%s: control characters", label);
    cr_expect(!s.map && !s.tensors && !s.path && s.n_tensors == 0, "%s: not closed", label);
    safetensors_close(&s);
}

static const float values[6] = {1.5f, -2.0f, 3.0f, 4.0f, 5.0f, 6.0f};
static const struct tensor sample[] = {
    {.name = "in.x", .rank = 2, .shape = {2, 2}, .n = 4, .data = values},
    {.name = "scalar", .rank = 0, .n = 1, .data = values + 4},
    {.name = "empty", .dtype = DTYPE_I32, .rank = 2, .shape = {4, 0}, .n = 0},
    {.name = "last", .rank = 1, .shape = {1}, .n = 1, .data = values + 5},
};
static const char *const sample_meta[] = {"kind", "checkpoint", "n_head", "8"};

Test(safetensors_hostile, every_truncation_is_refused)
{
    MUST(safetensors_write(path, sample, ARRAY_LEN(sample), sample_meta, 2, &failure));
    const struct bytes bytes = folder_read(name);
    for (size_t n = 0; n < bytes.n; n++) {
        folder_put(name, bytes.data, n);
        const char *const label = kept_text("%zu of %zu bytes", n, bytes.n);
        expect_refused(n < 8 ? "too few" : "header says", label);
    }
}

/* One damaged byte gives a message or a file whose tensors can be read. */
Test(safetensors_hostile, any_damaged_byte_is_survived)
{
    static const unsigned char damage[] = {0, 1, ' ', '"', ',', '0', '9', '-', '[', '{', '}', 0xff};
    size_t accepted = 0, refused = 0;

    MUST(safetensors_write(path, sample, ARRAY_LEN(sample), sample_meta, 2, &failure));
    const struct bytes bytes = folder_read(name);
    for (size_t i = 0; i < bytes.n * ARRAY_LEN(damage); i++) {
        const size_t at = i / ARRAY_LEN(damage);
        const unsigned char kept = bytes.data[at];
        struct safetensors s;
        bytes.data[at] = damage[i % ARRAY_LEN(damage)];
        folder_put(name, bytes.data, bytes.n);
        bytes.data[at] = kept;
        const enum status st = safetensors_open(&s, path, &failure);
        cr_assert(st == OK || (st == E_IO && strstr(failure.msg, path)), "byte %zu: %s", at,
                  failure.msg);
        *(st == OK ? &accepted : &refused) += 1;
        for (int t = 0; t < s.n_tensors; t++) {
            const unsigned char *data = s.tensors[t].data;
            cr_assert(data >= s.map && data + 4 * s.tensors[t].n <= s.map + s.size);
        }
        safetensors_close(&s);
    }
    cr_expect_gt(accepted, 0);
    cr_expect_gt(refused, accepted);
}

#define T(dtype, shape, offsets)                                                                   \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define NAME_24 "abcdefghijklmnopqrstuvwx"

Test(safetensors_hostile, hostile_headers)
{
    static const struct {
        const char *header, *part;
        size_t data;
    } hostile[] = {
        {"", "not JSON", 0},
        {"   ", "not JSON", 0},
        {"x", "not JSON", 0},
        {"{\"a\":", "not JSON", 0},
        {"{} {}", "not JSON", 0},
        {"[]", "not a JSON object", 0},
        {"[[[[{}]]]]", "not a JSON object", 0},
        {"{\"\xff\":1}", "not JSON", 0},
        {"{\"a\\u0000b\":1}", "not JSON", 0},
        {"{\"a\":" T("F32", "[1]", "[0,4]") ",\"a\":" T("F32", "[1]", "[4,8]") "}", "duplicate", 8},
        {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"I32\",\"shape\":[],\"data_offsets\":[0,4]}}",
         "duplicate", 4},
        /* entries */
        {"{\"a\":1}", "\"a\" has no dtype", 0},
        {"{\"a\":null}", "\"a\" has no dtype", 0},
        {"{\"a\":[\"F32\",[1],[0,4]]}", "\"a\" has no dtype", 4},
        {"{\"a\":{\"b\":{\"dtype\":\"F32\"}}}", "\"a\" has no dtype", 0},
        {"{\"a\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}}", "\"a\" has no dtype", 4},
        {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", "\"a\": shape", 4},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", "\"a\": data_offsets", 4},
        {"{\"a\":" T("F16", "[2]", "[0,4]") "}", "\"a\" has dtype F16", 4},
        {"{\"a\":" T("f32", "[1]", "[0,4]") "}", "\"a\" has dtype f32", 4},
        {"{\"a\":" T("", "[1]", "[0,4]") "}", "\"a\" has dtype", 4},
        {"{\"a\\n\\u001b[31m\":" T("F64", "[1]", "[0,8]") "}", "\"a\\n\\x1b[31m\" has dtype F64",
         8},
        {"{\"" NAME_24 NAME_24 NAME_24 NAME_24 "\":" T("F32", "[1]", "[0,4]") "}", "96 bytes", 4},
        /* shapes */
        {"{\"a\":" T("F32", "4", "[0,16]") "}", "\"a\": shape", 16},
        {"{\"a\":" T("F32", "{}", "[0,4]") "}", "\"a\": shape", 4},
        {"{\"a\":" T("F32", "[1,1,1,1,1,1]", "[0,4]") "}", "\"a\": shape", 4},
        {"{\"a\":" T("F32", "[-1]", "[0,4]") "}", "size 0 of its shape", 4},
        {"{\"a\":" T("F32", "[1,1.0]", "[0,4]") "}", "size 1 of its shape", 4},
        {"{\"a\":" T("F32", "[\"1\"]", "[0,4]") "}", "size 0 of its shape", 4},
        {"{\"a\":" T("F32", "[[1]]", "[0,4]") "}", "size 0 of its shape", 4},
        {"{\"a\":" T("F32", "[true]", "[0,4]") "}", "size 0 of its shape", 4},
        {"{\"a\":" T("F32", "[2147483648]", "[0,4]") "}", "size 0 of its shape", 4},
        {"{\"a\":" T("F32", "[99999999999999999999]", "[0,4]") "}", "not JSON", 4},
        {"{\"a\":" T("F32", "[1e999]", "[0,4]") "}", "not JSON", 4},
        {"{\"a\":" T("F32", "[2147483647,2147483647,2147483647]", "[0,4]") "}", "overflows", 4},
        {"{\"a\":" T("F32", "[2147483647,2147483647,4]", "[0,4]") "}", "overflows", 4},
        {"{\"a\":" T("F32", "[3]", "[0,8]") "}", "needs 12 bytes, data_offsets give 8", 8},
        {"{\"a\":" T("F32", "[]", "[0,0]") "}", "needs 4 bytes, data_offsets give 0", 0},
        {"{\"a\":" T("F32", "[0]", "[0,4]") "}", "needs 0 bytes, data_offsets give 4", 4},
        /* offsets */
        {"{\"a\":" T("F32", "[1]", "[4,0]") "}", "\"a\": data_offsets", 4},
        {"{\"a\":" T("F32", "[1]", "[-4,0]") "}", "\"a\": data_offsets", 4},
        {"{\"a\":" T("F32", "[1]", "[0,4,8]") "}", "\"a\": data_offsets", 8},
        {"{\"a\":" T("F32", "[1]", "[0.0,4]") "}", "\"a\": data_offsets", 4},
        {"{\"a\":" T("F32", "[1]", "\"0,4\"") "}", "\"a\": data_offsets", 4},
        {"{\"a\":" T("F32", "[1]", "[9223372036854775803,9223372036854775807]") "}", "begins at",
         4},
        {"{\"a\":" T("F32", "[1]", "[4,8]") "}", "\"a\" begins at 4, the one before it ends at 0",
         8},
        {"{\"a\":" T("F32", "[2]", "[0,8]") ",\"b\":" T("I32", "[2]", "[4,12]") "}",
         "\"b\" begins at 4, the one before it ends at 8", 12},
        {"{\"a\":" T("F32", "[1]", "[0,4]") ",\"b\":" T("I32", "[1]", "[8,12]") "}",
         "\"b\" begins at 8, the one before it ends at 4", 12},
        {"{\"a\":" T("F32", "[1]", "[8,12]") ",\"b\":" T("I32", "[1]", "[0,4]") "}",
         "\"a\" begins at 8, the one before it ends at 4", 12},
        {"{\"a\":" T("F32", "[2]", "[2,10]") ",\"b\":" T("I32", "[1]", "[0,4]") "}",
         "\"a\" begins at 2, the one before it ends at 4", 10},
        {"{\"a\":" T("F32", "[1]", "[0,4]") ",\"b\":" T("I32", "[1]", "[0,4]") "}",
         "\"b\" begins at 0", 4},
        /* metadata */
        {"{\"__metadata__\":[]}", "__metadata__ is not an object", 0},
        {"{\"__metadata__\":null}", "__metadata__ is not an object", 0},
        {"{\"__metadata__\":{\"k\":\"v\",\"n_head\":8}}", "metadata \"n_head\" is not a string", 0},
        {"{\"__metadata__\":{\"k\":{}}}", "metadata \"k\" is not a string", 0},
        {"{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", "duplicate", 0},
    };

    for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
        const char *header = hostile[i].header;
        put_header(strlen(header), header, hostile[i].data);
        expect_refused(hostile[i].part, *header ? header : "empty header");
    }
}

/* Published files have other types, data at odd addresses, entries in any order: what is wrong of a
 * file of ours and right there, and what is wrong of both. */
Test(safetensors_hostile, published_files)
{
    static const struct {
        const char *header, *part; /* NULL: a file of that kind is right */
        size_t data;
    } published[] = {
        {"{\"a\":" T("F16", "[2]", "[0,4]") "}", NULL, 4},
        {"{\"a\":" T("BF16", "[2]", "[0,4]") "} ", NULL, 4},
        {"{\"m\":" T("BOOL", "[1]", "[0,1]") ",\"a\":" T("F32", "[1]", "[1,5]") "}", NULL, 5},
        {"{\"a\":" T("F32", "[1]", "[1,5]") ",\"m\":" T("U8", "[1]", "[0,1]") "}", NULL, 5},
        {"{\"m\":" T("I64", "[]", "[0,8]") "}", NULL, 8},
        {"{\"m\":" T("F8_E4M3", "[3]", "[0,3]") "}", NULL, 3},
        {"{\"m\":" T("F16", "[3]", "[0,4]") "}", "needs 6 bytes", 4},
        {"{\"m\":" T("I64", "[1]", "[0,4]") "}", "needs 8 bytes", 4},
        {"{\"m\":" T("F64", "[2147483647,2147483647,4]", "[0,4]") "}", "overflows", 4},
        {"{\"m\":" T("F4", "[3]", "[0,3]") ",\"a\":" T("F32", "[1]", "[4,8]") "}", "begins at 4",
         8},
        {"{\"m\":" T("F4", "[3]", "[0,3]") "}", "header says", 4},
    };

    for (size_t i = 0; i < ARRAY_LEN(published); i++) {
        const char *const header = published[i].header, *const part = published[i].part;
        struct safetensors s;
        struct err e = {""};
        put_header(strlen(header), header, published[i].data);
        cr_expect_eq(safetensors_open_published(&s, path, &e), part ? E_IO : OK, "%s: %s", header,
                     e.msg);
        cr_expect(!part || strstr(e.msg, part), "%s: %s", header, e.msg);
        safetensors_close(&s);
        expect_refused("", header);
    }
}

Test(safetensors_hostile, sizes_that_do_not_match)
{
    static const uint64_t absurd[] = {100 * 1000 * 1000 + 1, (uint64_t)1 << 32, (uint64_t)1 << 63,
                                      UINT64_MAX - 8,        UINT64_MAX - 7,    UINT64_MAX};
    const char *header = "{\"a\":" T("F32", "[2]", "[0,8]") "}  "; /* 56 bytes */
    struct safetensors s;

    cr_assert_eq(strlen(header), 56);
    put_header(56, header, 8);
    cr_expect_eq(safetensors_open(&s, path, &failure), OK, "%s", failure.msg);
    safetensors_close(&s);

    put_header(56, header, 7);
    expect_refused("header says 72 bytes, file has 71", "one byte short");
    put_header(56, header, 9);
    expect_refused("header says 72 bytes, file has 73", "one byte over");
    put_header(65, header, 8);
    expect_refused("header says 73 bytes, file has 72", "header beyond the file");
    for (size_t i = 0; i < ARRAY_LEN(absurd); i++) {
        put_header(absurd[i], header, 8);
        expect_refused("the limit is", "absurd header length");
    }
    put_header(54, "{\"a\":" T("F32", "[2]", "[0,8]") "}", 8);
    expect_refused("data begins at byte 62", "unaligned data");
}

Test(safetensors_hostile, deep_nesting)
{
    enum { DEPTH = 200000 };
    char *header = room(1, DEPTH + 1);

    memset(header, '[', DEPTH);
    header[DEPTH] = '\0';
    put_header(DEPTH, header, 0);
    expect_refused("not JSON", "200000 brackets");
}

Test(safetensors_hostile, not_files)
{
    folder_put(name, "", 0);
    expect_refused("0 bytes are too few", "empty file");
    unlink(path);
    expect_refused("No such file", "missing file");
    cr_assert_eq(mkdir(path, 0700), 0);
    expect_refused("not a regular file", "folder");
    rmdir(path);
    cr_assert_eq(mkfifo(path, 0600), 0);
    alarm(10); /* opening must not wait for a writer */
    expect_refused("not a regular file", "FIFO");
}

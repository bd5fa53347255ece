/* SPDX-License-Identifier: MIT
 *
 * Files of ids: the same ids in each form, and what is refused. */
#include "harness/tokens/token_file.h"

#include "tests/support/tmp_folder.h"

TestSuite(token_file, .init = folder_make, .fini = folder_remove);

struct made {
    char data[4096];
    size_t n;
};

static void put(struct made *m, uint64_t value, int width)
{
    for (int i = 0; i < width; i++)
        m->data[m->n++] = (char)(value >> (8 * i));
}

static void put_ids(struct made *m, int width)
{
    static const int ids[] = {5, 0, 40000, 7, 300};

    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        put(m, (uint64_t)ids[i], width);
}

/* numpy.save's header, to a multiple of 64 bytes. */
static void put_npy(struct made *m, int version, const char *descr, const char *shape)
{
    char header[256];
    const int size = version > 1 ? 4 : 2;
    const int n = snprintf(header, sizeof(header),
                           "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape);

    memcpy(m->data, "\x93NUMPY", 6);
    m->data[6] = (char)version;
    m->data[7] = 0;
    m->n = 8;
    put(m, 117, size);
    memset(m->data + m->n, ' ', 117);
    memcpy(m->data + m->n, header, (size_t)n);
    m->n += 117;
    m->data[m->n - 1] = '\n';
}

static void put_llmc(struct made *m, unsigned magic, unsigned version, unsigned n)
{
    memset(m->data, 0, 1024);
    m->n = 0;
    put(m, magic, 4);
    put(m, version, 4);
    put(m, n, 4);
    m->n = 1024;
}

static enum status read_made(struct ids *out, const struct made *m, enum id_type type, char *why)
{
    struct err e = {""};

    const char *const path = in_folder("ids");
    cr_assert_eq(file_replace(path, m->data, m->n, &e), OK, "%s", e.msg);
    *out = (struct ids){0};
    const enum status st = token_file_read(out, path, type, &e);
    kept(out->v);
    cr_expect(st == OK || strstr(e.msg, path), "%s", e.msg);
    snprintf(why, sizeof(e.msg), "%s", e.msg);
    return st;
}

static void expect_ids(const struct made *m, enum id_type type, const char *what)
{
    static const int32_t want[] = {5, 0, 40000, 7, 300};
    char why[sizeof(((struct err *)0)->msg)];
    struct ids got;

    cr_expect_eq(read_made(&got, m, type, why), OK, "%s: %s", what, why);
    cr_expect(got.n == 5 && memcmp(got.v, want, sizeof(want)) == 0, "%s: %zu ids", what, got.n);
}

static void expect_refused(const struct made *m, enum id_type type, enum status st,
                           const char *part)
{
    char why[sizeof(((struct err *)0)->msg)];
    struct ids got;

    cr_expect_eq(read_made(&got, m, type, why), st, "%s", part);
    HAS(why, part);
}

Test(token_file, bare_ids)
{
    static const struct {
        enum id_type type;
        int width;
    } of[] = {{ID_AUTO, 4}, {ID_INT32, 4}, {ID_UINT32, 4}, {ID_UINT16, 2}, {ID_INT64, 8}};

    for (size_t i = 0; i < ARRAY_LEN(of); i++) {
        struct made m = {.n = 0};
        put_ids(&m, of[i].width);
        expect_ids(&m, of[i].type, "bare");
    }
}

Test(token_file, bare_ids_of_another_type)
{
    struct made m = {.n = 0};

    put_ids(&m, 8);
    expect_refused(&m, ID_AUTO, E_IO, "--tokens-type int64");
    struct ids got;
    char why[sizeof(((struct err *)0)->msg)];
    cr_expect_eq(read_made(&got, &m, ID_INT32, why), OK); /* it is said that they are */
    cr_expect_eq(got.n, 10);
    m.n = 0;
    put_ids(&m, 2);
    expect_refused(&m, ID_AUTO, E_IO, "10 bytes");
    m.n = 0;
    put(&m, 5, 4);
    put(&m, 0xfffffffe, 4);
    put(&m, 1, 4);
    expect_refused(&m, ID_AUTO, E_IO, "id -2 at place 1");
    expect_refused(&m, ID_UINT32, E_IO, "id 4294967294 at place 1");
    m.n = 4;
    expect_refused(&m, ID_AUTO, E_IO, "2 ids or more");
    m.n = 0;
    expect_refused(&m, ID_UINT16, E_IO, "2 ids or more");
    put(&m, 5, 8);
    put(&m, (uint64_t)1 << 40, 8);
    expect_refused(&m, ID_INT64, E_IO, "id 1099511627776 at place 1");
}

Test(token_file, numpy)
{
    static const struct {
        int version;
        const char *descr;
        int width;
    } of[] = {{1, "<u2", 2}, {1, "<i4", 4}, {2, "<u4", 4}, {3, "<i8", 8}, {1, "<u8", 8}};

    for (size_t i = 0; i < ARRAY_LEN(of); i++) {
        struct made m = {.n = 0};
        put_npy(&m, of[i].version, of[i].descr, "(5,)");
        put_ids(&m, of[i].width);
        expect_ids(&m, ID_AUTO, of[i].descr);
    }
    struct made m = {.n = 0};
    put_npy(&m, 1, "|u1", "(3,)");
    memcpy(m.data + m.n, "\1\2\xff", 3);
    m.n += 3;
    struct ids got;
    char why[sizeof(((struct err *)0)->msg)];
    cr_assert_eq(read_made(&got, &m, ID_AUTO, why), OK, "%s", why);
    cr_expect(got.n == 3 && got.v[2] == 255);
    expect_refused(&m, ID_UINT16, E_USAGE, "leave out");
}

Test(token_file, numpy_that_is_refused)
{
    static const struct {
        const char *descr, *shape, *part;
    } wrong[] = {{">i4", "(5,)", ">i4"},   {"<f4", "(5,)", "<f4"},
                 {"|b1", "(5,)", "|b1"},   {"<i4", "(5, 1)", "(5, 1)"},
                 {"<i4", "()", "()"},      {"<i4", "5", "shape 5"},
                 {"<i4", "(6,)", "6 ids"}, {"<i4", "(4,)", "4 ids"},
                 {"<i16", "(5,)", "<i16"}, {"<i4", "(18446744073709551615,)", "ids"}};

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct made m = {.n = 0};
        put_npy(&m, 1, wrong[i].descr, wrong[i].shape);
        put_ids(&m, 4);
        expect_refused(&m, ID_AUTO, E_IO, wrong[i].part);
    }
    struct made m = {.n = 0};
    put_npy(&m, 1, "<i4", "(5,)");
    for (size_t n = 6; n < 127; n += 5) {
        m.n = n;
        expect_refused(&m, ID_AUTO, E_IO, "header");
    }
    put_npy(&m, 4, "<i4", "(5,)");
    expect_refused(&m, ID_AUTO, E_IO, "header");
}

Test(token_file, llm_c)
{
    struct made m;

    put_llmc(&m, 20240520, 1, 5);
    put_ids(&m, 2);
    expect_ids(&m, ID_AUTO, "gpt2's");
    put_llmc(&m, 20240801, 7, 5);
    put_ids(&m, 4);
    expect_ids(&m, ID_AUTO, "llama3's");
    expect_refused(&m, ID_UINT32, E_USAGE, "leave out");
    put_llmc(&m, 20240801, 8, 5);
    put_ids(&m, 4);
    expect_refused(&m, ID_AUTO, E_IO, "version 8");
    put_llmc(&m, 20240520, 1, 6);
    put_ids(&m, 2);
    expect_refused(&m, ID_AUTO, E_IO, "6 ids");
}

Test(token_file, looks_uint16)
{
    const int32_t pairs[] = {5 | 9 << 16, 8 | 3 << 16}, others[] = {5 | 9 << 16, 11};

    cr_expect(token_file_looks_uint16(pairs, 2, 10));
    cr_expect(!token_file_looks_uint16(pairs, 2, 9));
    cr_expect(!token_file_looks_uint16(others, 2, 10));
}

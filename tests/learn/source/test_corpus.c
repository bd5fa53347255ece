/* SPDX-License-Identifier: MIT
 *
 * Texts: bytes and fingerprint are the file's, and files that are no texts are refused. */
#include "harness/learn/source/corpus.h"
#include "tests/support/tmp_folder.h"

#include <inttypes.h>
#include <xxhash.h>

TestSuite(corpus, .init = folder_make, .fini = folder_remove);

static const char *text_file(const void *bytes, size_t n)
{
    folder_put("text", bytes, n);
    return in_folder("text");
}

static void expect_xxh3(const struct corpus *c)
{
    cr_expect_str_eq(c->xxh3, kept_text("%016" PRIx64, (uint64_t)XXH3_64bits(c->bytes, c->n)));
}

static void expect_refused(const char *path, size_t max_bytes, enum status want, const char *part)
{
    struct corpus c;
    struct err e = {""};

    cr_expect_eq(corpus_open(&c, path, SPLIT_TEST, max_bytes, &e), want, "%s", path);
    cr_expect_not_null(strstr(e.msg, path), "\"%s\" does not name %s", e.msg, path);
    cr_expect_not_null(strstr(e.msg, part), "\"%s\" does not say %s", e.msg, part);
    cr_expect_not_null(strstr(e.msg, "  -> "), "\"%s\" does not say what to do", e.msg);
    cr_expect_null(c.bytes);
    corpus_close(&c);
}

Test(corpus, has_the_bytes_of_the_file)
{
    const char text[] = "Call me\0Ishmael.\xff\n";
    const size_t n = sizeof(text) - 1;
    const char *const path = text_file(text, n);
    struct corpus c;

    MUST(corpus_open(&c, path, SPLIT_TEST, 0, &failure));
    cr_expect_eq(c.n, n);
    cr_expect_arr_eq(c.bytes, text, n);
    cr_expect_str_eq(c.name, strrchr(path, '/') + 1);
    expect_xxh3(&c);
    corpus_close(&c);
    cr_expect_null(c.bytes);
    corpus_close(&c); /* harmless */
}

Test(corpus, known_fingerprint)
{
    /* XXH3 of "abc" as a constant: guards against another hash, seed or byte order. */
    struct corpus c;

    MUST(corpus_open(&c, text_file("abcdef", 6), SPLIT_TEST, 3, &failure));
    cr_expect_str_eq(c.xxh3, "78af5f94892f3950");
    corpus_close(&c);
}

Test(corpus, takes_the_first_bytes)
{
    const size_t limits[] = {2, 3, 4095, 4096, 4097, 9999, 10000, 10001, SIZE_MAX};
    uint8_t text[10000];
    char whole[17];
    struct corpus c;

    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (uint8_t)(i * 31 >> 3);
    const char *const path = text_file(text, sizeof(text));
    MUST(corpus_open(&c, path, SPLIT_TEST, 0, &failure));
    strcpy(whole, c.xxh3);
    corpus_close(&c);
    for (size_t k = 0; k < ARRAY_LEN(limits); k++) {
        const size_t n = limits[k] < sizeof(text) ? limits[k] : sizeof(text);
        MUST(corpus_open(&c, path, SPLIT_TEST, limits[k], &failure));
        cr_expect_eq(c.n, n);
        cr_expect_arr_eq(c.bytes, text, n);
        expect_xxh3(&c);
        cr_expect_eq(strcmp(c.xxh3, whole) == 0, n == sizeof(text), "%zu bytes", n);
        corpus_close(&c);
    }
}

Test(corpus, refuses_what_is_no_text)
{
    const char *const pipe = in_folder("pipe");

    expect_refused("/", 0, E_IO, "not a regular file");
    expect_refused("/dev/null", 0, E_IO, "not a regular file");
    expect_refused(text_file("", 0), 0, E_IO, "0 bytes");
    expect_refused(pipe, 0, E_IO, "No such file");
    cr_assert_eq(mkfifo(pipe, 0600), 0);
    alarm(10); /* opening must not wait for a writer */
    expect_refused(pipe, 0, E_IO, "not a regular file");
    expect_refused(text_file("x", 1), 0, E_IO, "1 byte");
    expect_refused(text_file("xyz", 3), 1, E_USAGE, "2 or more");
}

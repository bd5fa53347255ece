/* SPDX-License-Identifier: MIT
 *
 * See kept.h, failure.h for the one error, and tmp_folder.h for the one folder. */
#include "tmp_folder.h"

struct err failure;
char folder[64];

static struct held {
    void *p;
    struct held *next;
} * all;

void *kept(void *p)
{
    struct held *const h = malloc(sizeof(*h));

    cr_assert_not_null(h);
    *h = (struct held){p, all};
    all = h;
    return p;
}

void *room(size_t n, size_t size) { return kept(need_room(n, size)); }

void kept_copy(const void *p, size_t size) { memcpy(room(1, size), p, size); }

float *copied(const float *x, size_t n) { return memcpy(room(n, sizeof(*x)), x, n * sizeof(*x)); }

const char *kept_text(const char *fmt, ...)
{
    char *text;
    va_list args;

    va_start(args, fmt);
    cr_assert_geq(vasprintf(&text, fmt, args), 0);
    va_end(args);
    return kept(text);
}

struct bytes must_load(const char *path)
{
    struct bytes b;

    MUST(file_read(&b, path, &failure));
    kept(b.data);
    return b;
}

static struct text {
    char *data;
    size_t n;
} * writing;

FILE *text_begin(void)
{
    writing = room(1, sizeof(*writing));
    FILE *const f = open_memstream(&writing->data, &writing->n);
    cr_assert_not_null(f);
    return f;
}

char *text_end(FILE *f)
{
    cr_assert_eq(fclose(f), 0);
    return writing->data;
}

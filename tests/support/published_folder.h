/* SPDX-License-Identifier: MIT
 *
 * A copy of a published model (tests/golden-import/BASE) in the test's folder, to be changed. */
#pragma once

#include "json.h"
#include "tmp_folder.h"
#include "variants/model/import/published.h"

#include <dirent.h>

#define PUBLISHED "tests/golden-import"
enum { HEADER_AT = 8 };

/* A text for models of 19 words and more. */
static inline void put_ids(void)
{
    int32_t ids[97];

    for (int i = 0; i < (int)ARRAY_LEN(ids); i++)
        ids[i] = i * 7 % 19;
    folder_put("ids.bin", ids, sizeof(ids));
}

/* The path of a file of the copy, or of the copy itself. */
static inline const char *published_path(const char *file)
{
    static char path[2][FILE_PATH];
    static int turn;

    turn = !turn;
    folder_path(path[turn], kept_text("model%s%s", *file ? "/" : "", file));
    return path[turn];
}

static inline void published_remove(const char *file)
{
    cr_assert_eq(unlink(published_path(file)), 0, "%s", file);
}

/* Begin anew with a copy of this one. */
static inline void published_copy(const char *base)
{
    const char *const command = kept_text("rm -rf '%s' && cp -r %s/%s '%s'", published_path(""),
                                          PUBLISHED, base, published_path(""));
    cr_assert_eq(system(command), 0, "%s", command); // NOLINT: a folder of our own
}

static inline void published_write(const char *file, const void *data, size_t n)
{
    FILE *const f = fopen(published_path(file), "wb");

    cr_assert_not_null(f);
    cr_assert_eq(fwrite(data, 1, n, f), n);
    cr_assert_eq(fclose(f), 0);
}

static inline struct bytes published_read(const char *file)
{
    return must_load(published_path(file));
}

static inline json_t *published_json(const char *file)
{
    json_t *const j = json_load_file(published_path(file), 0, NULL);

    cr_assert_not_null(j, "%s", file);
    return j;
}

/* Write and release. */
static inline void published_put_json(const char *file, json_t *j)
{
    char *const text = kept(json_dumps(j, 0));

    cr_assert_not_null(text);
    published_write(file, text, strlen(text));
    json_decref(j);
}

/* One key of config.json; value NULL removes it. */
static inline void published_set(const char *key, json_t *value)
{
    json_t *const config = published_json("config.json");

    if (value)
        json_object_set_new(config, key, value);
    else
        json_object_del(config, key);
    published_put_json("config.json", config);
}

/* The header of a file of weights, and its tensors' bytes behind it. */
static inline json_t *published_header(struct bytes *b, const char *file, size_t *data)
{
    uint64_t n;

    *b = published_read(file);
    memcpy(&n, b->data, sizeof(n));
    *data = HEADER_AT + (size_t)n;
    json_t *const header = json_loadb(b->data + HEADER_AT, (size_t)n, 0, NULL);
    cr_assert_not_null(header);
    return header;
}

/* The same file with another header; releases the header. */
static inline void published_put_header(const char *file, json_t *header, struct bytes *b,
                                        size_t data)
{
    char *const text = kept(json_dumps(header, 0));
    const uint64_t n = strlen(text);
    FILE *const f = fopen(published_path(file), "wb");

    cr_assert_not_null(f);
    cr_assert_eq(fwrite(&n, 1, sizeof(n), f), sizeof(n));
    cr_assert_eq(fwrite(text, 1, n, f), n);
    cr_assert_eq(fwrite(b->data + data, 1, b->n - data, f), b->n - data);
    cr_assert_eq(fclose(f), 0);
    json_decref(header);
}

/* Open the copy, kept until the test ends: it is refused with these words, or accepted. */
static inline enum status published_try(struct published *p, struct err *e)
{
    *e = (struct err){""};
    TRY(published_open(p, published_path(""), e));
    kept_copy(p, sizeof(*p));
    return OK;
}

static inline void published_refused(const char *what, const char *says)
{
    struct published p;

    cr_expect_eq(published_try(&p, &failure), E_IO, "%s is accepted", what);
    cr_expect(strstr(failure.msg, says), "%s: \"%s\" does not say %s", what, failure.msg, says);
    cr_expect(strstr(failure.msg, "  -> ") && !strchr(failure.msg, '\n'), "%s: %s", what,
              failure.msg);
}

static inline void published_accepted(const char *what)
{
    struct published p;

    cr_expect_eq(published_try(&p, &failure), OK, "%s: %s", what, failure.msg);
    published_close(&p);
}

/* A copy of a model whose config has further keys: refused with these words, NULL = accepted. */
struct patch {
    const char *base, *set, *says;
};

static inline void try_patch(const struct patch *p)
{
    published_copy(p->base);
    json_t *const config = published_json("config.json");
    json_object_update(config, quoted_json(p->set));
    published_put_json("config.json", config);
    if (p->says)
        published_refused(p->set, p->says);
    else
        published_accepted(p->set);
}
#define TRY_PATCHES(patches)                                                                       \
    for (size_t i = 0; i < ARRAY_LEN(patches); i++)                                                \
    try_patch(&(patches)[i])

/* SPDX-License-Identifier: MIT
 *
 * JSON of texts and files, kept until the test ends. */
#pragma once

#include "failure.h"

#include <jansson.h>

static inline json_t *json_of(const char *text)
{
    json_error_t why;
    json_t *const j = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);

    cr_assert(j, "%s in %s", why.text, text);
    return kept(j);
}

static inline json_t *json_of_file(const char *path) { return json_of(must_load(path).data); }

/* With ' in place of ". */
static inline json_t *quoted_json(const char *text)
{
    char *const json = kept(strdup(text));

    for (char *at = json; (at = strchr(at, '\''));)
        *at = '"';
    return json_of(json);
}

static inline char *json_quoted(const json_t *j)
{
    char *const text = kept(json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY));

    for (char *at = text; (at = strchr(at, '"'));)
        *at = '\'';
    return text;
}

static inline const char *text_at(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

static inline double number_at(const json_t *o, const char *key)
{
    cr_assert(json_is_number(json_object_get(o, key)), "no number %s", key);
    return json_number_value(json_object_get(o, key));
}

/* SPDX-License-Identifier: MIT
 *
 * What stands in front of a text: the post-processor of tokenizer.json, and the files beside it
 * that name the token which begins a text. */
#include "tokenizer_json.h"

#include <string.h>

/* ---- post_processor ----------------------------------------------------------------------- */

static enum status bad_template(const struct tokenizer *t, const char *why, struct err *e)
{
    return tokenizer_fail(t, E_IO, e, "post_processor %s: not supported", why);
}

static enum status put_in_front(struct tokenizer *t, const json_t *j, const char *name,
                                struct err *e)
{
    const json_t *const special = json_object_get(json_object_get(j, "special_tokens"), name);
    const json_t *const ids = json_object_get(special, "ids");

    for (size_t k = 0; k < json_array_size(ids); k++) {
        const json_t *const id = json_array_get(ids, k);
        const json_int_t value = json_is_integer(id) ? json_integer_value(id) : -1;
        if (value < 0 || value >= t->vocab.n || !t->vocab.token[value].text ||
            t->n_prefix == MAX_PREFIX)
            return tokenizer_fail(t, E_IO, e,
                                  "post_processor with \"%.40s\" in front: no such token, or too "
                                  "many",
                                  name);
        t->prefix[t->n_prefix++] = (int32_t)value;
    }
    return json_array_size(ids) > 0
               ? OK
               : tokenizer_fail(t, E_IO, e, "post_processor with \"%.40s\", which has no ids",
                                name);
}

static enum status read_template(struct tokenizer *t, const json_t *j, struct err *e)
{
    static const struct key keys[] = {{"type", MAY_TEXT},
                                      {"single", MAY_LIST},
                                      {"pair", MAY_ANY}, /* of two texts */
                                      {"special_tokens", MAY_OBJECT}};
    const json_t *const parts = json_object_get(j, "single");
    bool ends = false; /* behind the text */
    enum status st = tokenizer_keys(t, "post_processor", j, keys, ARRAY_LEN(keys), e);

    if (st == OK && t->n_prefix > 0)
        st = bad_template(t, "with two templates", e);
    for (size_t i = 0; st == OK && i < json_array_size(parts); i++) {
        const json_t *const part = json_array_get(parts, i);
        const json_t *const text = json_object_get(part, "Sequence");
        const json_t *const token = json_object_get(part, "SpecialToken");
        if (ends)
            st = bad_template(t, "with tokens behind the text", e);
        else if (text && strcmp(word_of(text, "id"), "A") == 0)
            ends = true;
        else if (token)
            st = put_in_front(t, j, word_of(token, "id"), e);
        else
            st = bad_template(t, "with another part than a token and the text", e);
    }
    return st == OK && !ends ? bad_template(t, "without the text", e) : st;
}

static enum status read_processor(struct tokenizer *t, const json_t *j, struct err *e)
{
    const char *const type = word_of(j, "type");

    if (strcmp(type, "TemplateProcessing") == 0)
        return read_template(t, j, e);
    if (strcmp(type, "ByteLevel") == 0) /* of places, not of ids */
        return OK;
    return tokenizer_fail(t, E_IO, e, "post_processor %.40s: not supported", type);
}

enum status tokenizer_read_post(struct tokenizer *t, const json_t *j, struct err *e)
{
    return tokenizer_parts(t, "post_processor", j, "processors", read_processor, e);
}

/* ---- the files beside it ------------------------------------------------------------------ */

/* A token is its text, or an object that has it. */
static int32_t token_of(const struct tokenizer *t, const json_t *j, const char *key)
{
    const json_t *const value = json_object_get(j, key);
    const char *const text = json_is_object(value) ? word_of(value, "content") : word_of(j, key);

    return *text ? tokenizer_named(t, text) : -1;
}

/* Does the file name a token that begins a text, or ends one? Then it is t->begin. */
static bool read_names(struct tokenizer *t, const json_t *j)
{
    const bool names = json_object_get(j, "bos_token") || json_object_get(j, "eos_token");

    if (names)
        t->begin = token_of(t, j, "bos_token");
    if (names && t->begin < 0)
        t->begin = token_of(t, j, "eos_token");
    return names;
}

/* A number, or the first of a list; -1 = none. */
static json_int_t id_of(const json_t *config, const char *key)
{
    const json_t *value = json_object_get(config, key);

    if (json_is_array(value))
        value = json_array_get(value, 0);
    return json_is_integer(value) ? json_integer_value(value) : -1;
}

static void read_ids(struct tokenizer *t, const json_t *config)
{
    const json_int_t begin = id_of(config, "bos_token_id"), end = id_of(config, "eos_token_id");
    const json_int_t id = begin >= 0 ? begin : end;

    t->begin = id >= 0 && id < t->vocab.n ? (int32_t)id : -1;
}

static enum status read_switches(struct tokenizer *t, const json_t *j, struct err *e)
{
    const json_t *const bos = json_object_get(j, "add_bos_token");

    if (flag_of(j, "add_eos_token", false))
        return tokenizer_fail(t, E_IO, e,
                              "tokenizer_config.json: add_eos_token puts a token behind a text: "
                              "not supported  -> --tokens made elsewhere");
    if (json_is_false(bos) && t->n_prefix > 0) {
        t->n_prefix = 0;
        t->switched = SWITCHED_OFF;
    }
    const int32_t id = token_of(t, j, "bos_token");
    if (json_is_true(bos) && t->n_prefix == 0 && id >= 0) {
        t->prefix[t->n_prefix++] = id;
        t->switched = SWITCHED_ON;
    }
    return OK;
}

enum status tokenizer_read_front(struct tokenizer *t, struct err *e)
{
    static const char *const files[] = {"tokenizer_config.json", "special_tokens_map.json",
                                        "config.json"};
    bool named = false;
    enum status st = OK;

    t->begin = t->n_prefix > 0 ? t->prefix[0] : -1;
    for (size_t i = 0; st == OK && !named && i < ARRAY_LEN(files); i++) {
        json_t *j = NULL;
        if (!tokenizer_has(t, files[i]))
            continue;
        if (i == 2 && t->n_prefix > 0)
            break;
        st = tokenizer_object(t, files[i], &j, e);
        if (st == OK && i == 0)
            st = read_switches(t, j, e);
        if (st == OK && i < 2)
            named = read_names(t, j);
        else if (st == OK)
            read_ids(t, j);
        json_decref(j);
    }
    return st;
}

/* SPDX-License-Identifier: MIT
 *
 * What ends a text: the ids that a model's files name, which are a number or a list, and those of a
 * GGUF file. */
#include "tokenizer_gguf_keys.h"

#include "variants/base/gguf.h"

static enum status put_end(const struct tokenizer *t, const char *file, const char *key,
                           const json_t *id, struct ends *out, struct err *e)
{
    const json_int_t value = json_is_integer(id) ? json_integer_value(id) : -1;

    if (value < 0 || value > INT32_MAX)
        return tokenizer_bad(t, e, "%s: %s is not a token, nor a list of some  -> a whole file",
                             file, key);
    if (out->n == MAX_ENDS)
        return tokenizer_bad(t, e, "%s: more than %d ids of %s: not supported", file, MAX_ENDS,
                             key);
    out->id[out->n++] = (int32_t)value;
    return OK;
}

/* Null is as absent. */
static enum status put_ends(const struct tokenizer *t, const char *file, const json_t *j,
                            const char *key, struct ends *out, struct err *e)
{
    const json_t *const value = json_object_get(j, key);

    if (!json_is_array(value))
        return value && !json_is_null(value) ? put_end(t, file, key, value, out, e) : OK;
    for (size_t i = 0; i < json_array_size(value); i++)
        TRY(put_end(t, file, key, json_array_get(value, i), out, e));
    return OK;
}

static enum status ends_of_folder(const struct tokenizer *t, struct ends *out, struct err *e)
{
    static const char *const files[] = {"generation_config.json", "config.json"};

    for (size_t i = 0; out->n == 0 && i < ARRAY_LEN(files); i++) {
        json_t *j = NULL;
        if (!tokenizer_has(t, files[i]))
            continue;
        TRY(tokenizer_object(t, files[i], &j, e));
        const enum status st = put_ends(t, files[i], j, "eos_token_id", out, e);
        json_decref(j);
        TRY(st);
    }
    return OK;
}

/* The end of a text, of a turn and of a message. */
static enum status ends_of_keys(const struct tokenizer *t, const json_t *keys, struct ends *out,
                                struct err *e)
{
    static const char *const named[] = {"eos_token_id", "eot_token_id", "eom_token_id"};

    for (size_t i = 0; i < ARRAY_LEN(named); i++) {
        json_int_t id;
        TRY(gguf_token(t, keys, named[i], &id, e));
        if (id >= 0)
            out->id[out->n++] = (int32_t)id;
    }
    return OK;
}

static enum status ends_of_gguf(const struct tokenizer *t, struct ends *out, struct err *e)
{
    struct safetensors file;
    json_t *keys;

    TRY(gguf_open(&file, &keys, t->dir, e));
    const enum status st = ends_of_keys(t, keys, out, e);
    json_decref(keys);
    safetensors_close(&file);
    return st;
}

enum status tokenizer_ends(const struct tokenizer *t, const char *model, struct ends *out,
                           struct err *e)
{
    const char *const places[] = {*model ? model : t->dir, t->dir};

    *out = (struct ends){.n = 0};
    if (t->lists_words)
        return OK;
    for (size_t i = 0; out->n == 0 && i < ARRAY_LEN(places); i++) {
        struct tokenizer at = {.dir = need_text("%s", places[i])};
        const enum status st =
            gguf_is(at.dir) ? ends_of_gguf(&at, out, e) : ends_of_folder(&at, out, e);
        free(at.dir);
        TRY(st);
    }
    if (out->n == 0 && t->end >= 0)
        out->id[out->n++] = t->end;
    return OK;
}

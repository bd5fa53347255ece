/* SPDX-License-Identifier: MIT
 *
 * The token that a model was trained to see in front of a text, where its tokenizer puts none:
 * config.json of the same folder says it. */
#include "tokenizer_json.h"

#include "variants/base/json_text.h"

#include <stdlib.h>

/* A number, or the first of a list; -1 = none. */
static json_int_t id_of(const json_t *config, const char *key)
{
    const json_t *value = json_object_get(config, key);

    if (json_is_array(value))
        value = json_array_get(value, 0);
    return json_is_integer(value) ? json_integer_value(value) : -1;
}

int32_t tokenizer_begin(const struct tokenizer *t)
{
    struct bytes text = {0};
    json_error_t why;
    struct err ignored;
    json_int_t id = -1;

    if (t->lists_words)
        return t->eos;
    if (tokenizer_file(t, "config.json", &text, &ignored) == OK) {
        json_t *const config = json_read(text.data, text.n, JSON_REJECT_DUPLICATES, &why);
        id = id_of(config, "bos_token_id");
        id = id >= 0 ? id : id_of(config, "eos_token_id");
        json_decref(config);
    }
    free(text.data);
    return id >= 0 && id < t->vocab.n ? (int32_t)id : -1;
}

/* SPDX-License-Identifier: MIT
 *
 * Reading JSON files of tokenizers. A key that is not known may change the ids, and one of another
 * type than published programs write is no default: both are errors by name. */
#include "tokenizer_json.h"

#include "variants/base/json_text.h"

static int type_of(const json_t *j)
{
    return json_is_string(j)    ? MAY_TEXT
           : json_is_boolean(j) ? MAY_FLAG
           : json_is_number(j)  ? MAY_NUMBER
           : json_is_array(j)   ? MAY_LIST
           : json_is_object(j)  ? MAY_OBJECT
                                : MAY_NULL;
}

static const char *type_name(int may)
{
    return may & MAY_TEXT     ? "a text"
           : may & MAY_FLAG   ? "true or false"
           : may & MAY_NUMBER ? "a number"
           : may & MAY_LIST   ? "a list"
           : may & MAY_OBJECT ? "an object"
                              : "null";
}

enum status tokenizer_keys(const struct tokenizer *t, const char *what, const json_t *j,
                           const struct key *keys, size_t n, struct err *e)
{
    const char *name;
    json_t *value;

    if (!json_is_object(j))
        return tokenizer_bad(t, e, "%s is not an object  -> a whole file", what);
    json_object_foreach((json_t *)j, name, value)
    {
        size_t i = 0;
        while (i < n && strcmp(keys[i].name, name) != 0)
            i++;
        if (i == n)
            return tokenizer_bad(t, e,
                                 "%s has the key \"%.40s\": not supported  -> a file without it, "
                                 "or --tokens made elsewhere",
                                 what, name);
        if (!(keys[i].may & type_of(value)))
            return tokenizer_bad(t, e, "%s: \"%s\" is not %s  -> a whole file", what, name,
                                 type_name(keys[i].may));
    }
    return OK;
}

/* The parts of a sequence. */
static enum status parts_of(const json_t **parts, struct tokenizer *t, const char *what,
                            const json_t *j, const char *list, struct err *e)
{
    const struct key keys[] = {{"type", MAY_TEXT}, {list, MAY_LIST}};
    const enum status st = tokenizer_keys(t, what, j, keys, ARRAY_LEN(keys), e);

    *parts = json_object_get(j, list);
    return st != OK || *parts
               ? st
               : tokenizer_bad(t, e, "%s Sequence without %s  -> a whole file", what, list);
}

enum status tokenizer_parts(struct tokenizer *t, const char *what, const json_t *j,
                            const char *list, read_part_fn *read, struct err *e)
{
    enum { DEEPEST = 8 };
    struct {
        const json_t *parts;
        size_t at;
    } open[DEEPEST];
    const json_t *part = json_is_null(j) ? NULL : j;

    for (int n = 0; part;) {
        if (strcmp(word_of(part, "type"), "Sequence") != 0) {
            TRY(read(t, part, e));
        } else if (n == DEEPEST) {
            return tokenizer_bad(t, e,
                                 "%s has more than %d sequences in each other: not "
                                 "supported  -> a file with fewer",
                                 what, DEEPEST);
        } else {
            open[n].at = 0;
            TRY(parts_of(&open[n++].parts, t, what, part, list, e));
        }
        while (n > 0 && open[n - 1].at == json_array_size(open[n - 1].parts))
            n--;
        part = n > 0 ? json_array_get(open[n - 1].parts, open[n - 1].at++) : NULL;
    }
    return OK;
}

enum status tokenizer_object(const struct tokenizer *t, const char *name, json_t **out,
                             struct err *e)
{
    struct bytes text = {0};
    json_error_t why = {0};

    TRY(tokenizer_file(t, name, &text, e));
    *out = json_read(text.data, text.n, JSON_REJECT_DUPLICATES, &why);
    if (!*out &&
        json_error_code(&why) == json_error_numeric_overflow) /* transformers' 1e30 tokens */
        *out = json_read(text.data, text.n, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &why);
    const bool starved = !*out && errno == ENOMEM;
    free(text.data);
    if (starved)
        return tokenizer_no_memory(t, e);
    if (json_is_object(*out))
        return OK;
    json_decref(*out);
    *out = NULL;
    return tokenizer_bad(t, e, "%s is not a JSON object (byte %d %s)  -> give a whole file", name,
                         why.position, why.text);
}

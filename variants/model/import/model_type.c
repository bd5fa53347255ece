/* SPDX-License-Identifier: MIT
 *
 * What families share: the list of them, and names of tensors, ours and published, by their rows. */
#include "model_type.h"

#define X(name) &model_type_##name,
static const struct model_type *const model_types[] = {MODEL_TYPES(X)};
#undef X

const struct model_type *model_type_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(model_types); i++)
        if (strcmp(model_types[i]->name, name) == 0)
            return model_types[i];
    return NULL;
}

const char *model_type_names(void)
{
    enum { LAST = ARRAY_LEN(model_types) - 1 };
    static char names[ARRAY_LEN(model_types) * 16];

    *names = '\0';
    for (size_t i = 0; i <= LAST; i++)
        text_append(names, sizeof(names), "%s%s",
                    i == LAST ? " or "
                    : i       ? ", "
                              : "",
                    model_types[i]->name);
    return names;
}

/* ---- what is said ------------------------------------------------------------------------- */

void import_put_common(struct config_json *j, const char *variant)
{
    config_json_put(j, "variant", "%s", variant);
    SAY(j, {"emb_scale", "1"}, {"out_bias", "0"}, {"final_ln", "1"}, {"causal", "1"});
}

void import_need_flag(struct config_json *j, const char *key, bool usual)
{
    if (config_json_flag(j, key, usual) != usual)
        config_json_refuse(j, "%s %s %s: not supported  -> use a model %s", j->family,
                           usual ? "without" : "with", key, usual ? "with it" : "without");
}

void import_need_word(struct config_json *j, const char *key, const char *only)
{
    const char *const word = config_json_word(j, key, only);

    if (strcmp(word, only) != 0)
        import_refuse(j, "%s %.40s: not supported  -> use %s", key, word, only);
}

void import_skip(struct config_json *j, const char *const *keys)
{
    for (; *keys; keys++)
        config_json_at(j, *keys);
}

const struct act_name plain_acts[] = {
    {"gelu_new", "gelu_tanh"},  {"gelu", "gelu"},
    {"relu", "relu"},           {"silu", "swish"},
    {"swish", "swish"},         {"gelu_pytorch_tanh", "gelu_tanh"},
    {"gelu_fast", "gelu_tanh"}, {0},
};

void import_put_ffn(struct config_json *j, const char *key, const char *absent,
                    const struct act_name *names)
{
    const char *const word = config_json_word(j, key, absent);
    char known[128] = "";

    for (const struct act_name *a = names; a->published; a++) {
        if (strcmp(a->published, word) == 0) {
            config_json_put(j, "ffn", "%s", a->ours);
            return;
        }
        text_append(known, sizeof(known), "%s%s", *known ? ", " : "", a->published);
    }
    import_refuse(j, "%s %.40s: not supported  -> use %s", key, word, known);
}

bool tensor_row_covers(const char *pattern, const char *name, int *layer, const char **rest)
{
    *layer = -1;
    for (; *pattern; pattern++)
        if (*pattern == '*') {
            char *end;
            *layer = (int)strtol(name, &end, 10);
            if (end == name)
                return false;
            name = end;
        } else if (*pattern != *name++)
            return false;
    *rest = name;
    return !*name || strcmp(name, ".weight") == 0 || strcmp(name, ".bias") == 0;
}

void tensor_row_name(char to[TENSOR_NAME], const char *pattern, const char *prefix, int layer,
                     int expert, const char *rest)
{
    int n = snprintf(to, TENSOR_NAME, "%s", prefix), number = layer;

    for (const char *at = pattern; *at && n < TENSOR_NAME; at++)
        if (*at == '*') {
            n += snprintf(to + n, (size_t)(TENSOR_NAME - n), "%d", number);
            number = expert;
        } else {
            n += snprintf(to + n, (size_t)(TENSOR_NAME - n), "%c", *at);
        }
    if (n < TENSOR_NAME)
        snprintf(to + n, (size_t)(TENSOR_NAME - n), "%s", rest);
}

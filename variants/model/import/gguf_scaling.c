/* SPDX-License-Identifier: MIT
 *
 * Scaling of rotary frequencies in a GGUF file: an object in a folder, keys of their own and tensors
 * here (gguf_rope.h). */
#include "gguf_rope.h"

#define SCALING "rope.scaling."
#define SCALE_LINEAR "rope.scale_linear" /* in older files, the factor */
#define ORIGINAL "original_max_position_embeddings"
#define ATTENTION "attention_factor"

bool gguf_rope_is_key(const char *key)
{
    return strncmp(key, SCALING, strlen(SCALING)) == 0 || strcmp(key, SCALE_LINEAR) == 0;
}

/* The folder's name of a key. One that has none there keeps its own, by which it is refused. */
static const char *folder_key(const char *key)
{
    static const struct {
        const char *gguf, *folder;
    } of[] = {
        {"type", "rope_type"},           {"original_context_length", ORIGINAL},
        {"attn_factor", ATTENTION},      {"yarn_beta_fast", "beta_fast"},
        {"yarn_beta_slow", "beta_slow"},
    };

    if (strcmp(key, SCALE_LINEAR) == 0)
        return "factor";
    key += strlen(SCALING);
    for (size_t i = 0; i < ARRAY_LEN(of); i++)
        if (strcmp(key, of[i].gguf) == 0)
            return of[i].folder;
    return key;
}

static json_t *read_keys(const json_t *keys, const char *family)
{
    json_t *const how = json_object();
    const size_t n = strlen(family);
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)keys, key, value)
    {
        if (strncmp(key, family, n) == 0 && key[n] == '.' && gguf_rope_is_key(key + n + 1))
            json_object_set(how, folder_key(key + n + 1), value);
    }
    return how;
}

/* Take out a number that is as if it were not there. */
static void drop_if(json_t *how, const char *key, double idle)
{
    const json_t *const value = json_object_get(how, key);

    if (json_is_number(value) && json_number_value(value) == idle)
        json_object_del(how, key);
}

/* What the programs that read these files take: the lists of longrope say that it is, a factor
 * without a type is linear. */
static const char *type_of(const json_t *how, bool longrope)
{
    const char *const said = json_string_value(json_object_get(how, "rope_type"));

    if (longrope && (!said || strcmp(said, "none") == 0))
        return "longrope";
    if (said)
        return strcmp(said, "none") == 0 ? "default" : said;
    return json_object_get(how, "factor") ? "linear" : "default";
}

/* A factor of cosines and sines is 1 where longrope has none; in yarn it would be on top of the one
 * that follows from the lengths. */
static enum status settle(json_t *how, json_t *config, bool longrope, const char *path,
                          struct err *e)
{
    const json_t *const said = json_object_get(how, "rope_type");
    const char *const type = type_of(how, longrope);

    if (said && !json_is_string(said))
        return fail(e, E_IO, "checkpoint %s: rope.scaling.type is not a text  -> convert it again",
                    path);
    if (longrope && strcmp(type, "longrope") != 0)
        return fail(e, E_IO,
                    "checkpoint %s: rope_factors of longrope, but rope.scaling.type %.40s  -> use "
                    "the folder it was made of",
                    path, type);
    if (longrope && !json_object_get(how, ATTENTION))
        json_object_set_new(how, ATTENTION, json_real(1));
    if (longrope && json_object_get(how, ORIGINAL))
        json_object_set(config, ORIGINAL, json_object_get(how, ORIGINAL));
    if (!longrope)
        drop_if(how, ATTENTION, 1);
    if (strcmp(type, "default") == 0) {
        json_object_del(how, "factor");
        json_object_del(how, ORIGINAL);
    }
    json_object_del(how, "finetuned");
    drop_if(how, "yarn_ext_factor", 1);
    drop_if(how, "yarn_attn_factor", 1);
    drop_if(how, "yarn_log_multiplier", 0);
    if (json_object_get(how, ATTENTION) && strcmp(type, "yarn") == 0)
        return fail(e, E_IO,
                    "checkpoint %s: rope.scaling.attn_factor of yarn: not supported  -> use the "
                    "folder it was made of",
                    path);
    if (strcmp(type, "default") == 0) /* numbers that are left are refused by their names */
        json_object_del(how, "rope_type");
    if (json_object_size(how) > 0) {
        json_object_set_new(how, "rope_type", json_string(type));
        json_object_set(config, "rope_scaling", how);
    }
    return OK;
}

/* Divisors of all frequencies. */
static enum status take_freqs(json_t *config, struct safetensors *files, int n, const char *path,
                              struct err *e)
{
    enum { USUAL_BASE = 10000 };
    const json_t *const said = json_object_get(config, "rope_theta");
    const double base = json_is_number(said) ? json_number_value(said) : USUAL_BASE;
    json_t *scaling = NULL;
    int at;
    struct safetensors *const s = gguf_rope_find(files, n, GGUF_ROPE_FREQS, &at);

    if (!s)
        return OK;
    if (json_object_get(config, "rope_scaling"))
        return fail(e, E_IO,
                    "checkpoint %s: \"" GGUF_ROPE_FREQS
                    "\" and keys of rope.scaling exclude each other  -> use the folder it was "
                    "made of",
                    path);
    TRY(gguf_rope_scaling(&scaling, &s->tensors[at], base, path, e));
    gguf_rope_remove(s, at);
    if (scaling)
        json_object_set_new(config, "rope_scaling", scaling);
    return OK;
}

enum status gguf_rope_put(json_t *config, const json_t *keys, const char *family,
                          struct safetensors *files, int n, const char *path, struct err *e)
{
    json_t *const how = read_keys(keys, family);
    bool longrope;

    enum status st = gguf_rope_lists(how, &longrope, files, n, path, e);
    if (st == OK)
        st = settle(how, config, longrope, path, e);
    json_decref(how);
    return st == OK ? take_freqs(config, files, n, path, e) : st;
}

/* SPDX-License-Identifier: MIT
 *
 * A GGUF file as the folder that it was made of: names, and config.json. */
#include "gguf_model.h"

#include "gguf_files.h"
#include "gguf_rope.h"
#include "model_type.h"

/* ---- tensors ------------------------------------------------------------------------------ */

/* Axes of length 1, and of groups, stand otherwise in the folder. */
static void reshape(struct tensor *t, const struct gguf_family *f)
{
    const char *rest;
    int layer;

    for (const char *const *at = f->vectors; at && *at; at++)
        if (tensor_row_covers(*at, t->name, &layer, &rest)) {
            t->rank = 1;
            t->shape[0] = (int)t->n;
        }
    if (f->row && tensor_row_covers(f->row, t->name, &layer, &rest) && t->rank == 1) {
        t->rank = 2;
        t->shape[1] = t->shape[0];
        t->shape[0] = 1;
    }
    if (f->taps && tensor_row_covers(f->taps, t->name, &layer, &rest) && t->rank == 2) {
        t->rank = 3;
        t->shape[2] = t->shape[1];
        t->shape[1] = 1;
    }
}

/* What is not known keeps its name, by which it is refused. */
static void rename_tensor(struct tensor *t, const struct gguf_family *f)
{
    char name[TENSOR_NAME];
    const char *rest;
    int layer;

    reshape(t, f);
    for (int usual = 0; usual < 2; usual++)
        for (const struct gguf_names *n = usual ? gguf_usual_tensors : f->tensors; n && n->gguf;
             n++)
            if (tensor_row_covers(n->gguf, t->name, &layer, &rest)) {
                tensor_row_name(name, n->folder, "", layer, 0, rest);
                memcpy(t->name, name, sizeof(name));
                return;
            }
}

/* ---- keys --------------------------------------------------------------------------------- */

/* The folder's name of a key of the family; the key itself, without its dots, where it has none. */
static void folder_key(char to[TENSOR_NAME], const struct gguf_family *f, const char *key)
{
    for (int usual = 0; usual < 2; usual++)
        for (const struct gguf_names *n = usual ? gguf_usual_keys : f->keys; n && n->gguf; n++)
            if (strcmp(n->gguf, key) == 0) {
                snprintf(to, TENSOR_NAME, "%s", n->folder);
                return;
            }
    snprintf(to, TENSOR_NAME, "%s", key);
    for (char *at = to; *at; at++)
        *at = *at == '.' ? '_' : *at;
}

static json_int_t whole(const json_t *config, const char *key)
{
    return json_integer_value(json_object_get(config, key));
}

/* Take out sizes of heads that follow from others; a part of a head that is rotated is a share. */
static void settle_heads(json_t *config, const char *family)
{
    const json_int_t head = whole(config, "head_dim"), heads = whole(config, "num_attention_heads");
    const json_int_t wide = head ? head : heads > 0 ? whole(config, "hidden_size") / heads : 0;
    const bool halves = strcmp(family, "glm4") == 0; /* where folders do not say it */
    const json_int_t said = whole(config, "rope_dimension_count");
    const json_int_t rotated = said < 1 && halves ? wide : said;

    if (whole(config, "attention_value_length") == wide)
        json_object_del(config, "attention_value_length");
    if (strcmp(family, "gpt2") == 0 || wide < 1 || rotated < 1)
        return;
    json_object_del(config, "rope_dimension_count");
    /* rounded up: the next lower whole number of its product is meant */
    const double share = nextafter((double)rotated / (double)wide, INFINITY);
    if (rotated != wide || halves)
        json_object_set_new(config, "partial_rotary_factor",
                            json_real(rotated == wide ? 1 : share));
}

/* A number of heads of keys and values for each layer, 0 where it does not attend; the width of the
 * feed-forward network is that of its tensors. */
static void settle_layers(json_t *config)
{
    static const char key[] = "num_key_value_heads";
    json_t *const list = json_incref(json_object_get(config, key)), *const types = json_array();
    const json_t *heads;
    size_t l;

    json_array_foreach(list, l, heads)
    {
        const bool attends = json_integer_value(heads) > 0;
        json_array_append_new(types, json_string(attends ? "full_attention" : "conv"));
        if (attends)
            json_object_set(config, key, (json_t *)heads);
    }
    if (json_is_array(list)) {
        json_object_set(config, "layer_types", types);
        json_object_set_new(config, "block_auto_adjust_ff_dim", json_false());
    }
    json_decref(list);
    json_decref(types);
}

/* A width stands for its quotients: by heads, and by the width of the model. */
static void settle_recurrence(json_t *config)
{
    const json_int_t inner = whole(config, "ssm_inner_size"), heads = whole(config, "num_heads");
    const json_int_t wide = whole(config, "hidden_size");

    if (inner < 1 || heads < 1 || wide < 1 || inner % heads)
        return; /* the key is refused */
    json_object_set_new(config, "head_dim", json_integer(inner / heads));
    json_object_set_new(config, "expand", json_real((double)inner / (double)wide));
    json_object_del(config, "ssm_inner_size");
}

static bool is_number(const json_t *config, const char *key, double x)
{
    const json_t *const value = json_object_get(config, key);

    return json_is_number(value) && json_number_value(value) == x;
}

/* Zero experts are none; a family of files may be two of folders. Gates are of a softmax, 1. */
static void settle_experts(json_t *config, const struct gguf_family *f)
{
    static const char *const none[] = {"num_experts", "num_experts_per_tok"};

    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        if (is_number(config, none[i], 0))
            json_object_del(config, none[i]);
    const bool has = whole(config, "num_experts") > 0;
    if (has && strcmp(f->name, "llama") == 0) {
        json_object_set_new(config, "model_type", json_string("mixtral"));
        if (json_is_true(json_object_get(config, "norm_topk_prob")))
            json_object_del(config, "norm_topk_prob");
    }
    if (f->one_width &&
        whole(config, "moe_intermediate_size") == whole(config, "intermediate_size"))
        json_object_del(config, "moe_intermediate_size");
    if (is_number(config, "expert_gating_func", 1))
        json_object_del(config, "expert_gating_func");
    if (is_number(config, "expert_weights_scale", 1))
        json_object_del(config, "expert_weights_scale");
    if (f->norms_gates && !json_object_get(config, "norm_topk_prob"))
        json_object_set_new(config, "norm_topk_prob", json_true());
}

/* Values of another type are left, and refused by the folder's name. */
static bool are_flags(const json_t *list)
{
    bool all = json_is_array(list);

    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *const one = json_array_get(list, i);
        const json_int_t x = json_integer_value(one);
        all = all && (json_is_boolean(one) || (json_is_integer(one) && (x == 0 || x == 1)));
    }
    return all;
}

/* A flag for each layer that has a window, in place of a period, is a list of words there. */
static void settle_windows(json_t *config, const struct gguf_family *f)
{
    static const char period[] = "sliding_window_pattern";
    const json_t *const flags = json_object_get(config, period);
    json_t *const types = are_flags(flags) ? json_array() : NULL;
    const json_t *flag;
    size_t l;

    if (is_number(config, "sliding_window", 0)) /* none */
        json_object_del(config, "sliding_window");
    if (f->sees_all && !json_object_get(config, "sliding_window"))
        json_object_set_new(config, period, json_integer(1));
    if (!types)
        return;
    json_array_foreach(flags, l, flag) json_array_append_new(
        types, json_string(json_is_true(flag) || json_integer_value(flag) == 1 ? "sliding_attention"
                                                                               : "full_attention"));
    json_object_set_new(config, "layer_types", types);
    json_object_del(config, period);
}

/* What no key says. */
static void settle_divisor(json_t *config, const struct gguf_family *f)
{
    const json_int_t heads = whole(config, "num_attention_heads"), head = whole(config, "head_dim");

    if (f->divided_at == 0 || heads < 1)
        return;
    json_object_set_new(config, "query_pre_attn_scalar",
                        json_integer(whole(config, "num_hidden_layers") == f->divided_at || head < 1
                                         ? whole(config, "hidden_size") / heads
                                         : head));
}

static void settle_yarn(json_t *config, const struct gguf_family *f)
{
    json_t *const how = json_object_get(config, "rope_scaling");
    const char *const type = json_string_value(json_object_get(how, "rope_type"));

    if (f->fractions && type && strcmp(type, "yarn") == 0)
        json_object_set_new(how, "truncate", json_false());
}

/* With the names that tensors have in the file. */
static json_t *make_config(const struct gguf_family *f, const struct gguf_files *g)
{
    const size_t n = strlen(f->name);
    json_t *const config = json_object();
    char name[TENSOR_NAME];
    const char *key;
    json_t *value;

    json_object_set_new(config, "model_type", json_string(f->type ? f->type : f->name));
    json_object_foreach(g->keys, key, value)
    {
        const bool own = strncmp(key, f->name, n) == 0 && key[n] == '.';
        if (!own || gguf_rope_is_key(key + n + 1))
            continue;
        folder_key(name, f, key + n + 1);
        json_object_set_new(config, name, json_incref(value));
    }
    if (strcmp(f->name, "lfm2") == 0)
        settle_layers(config);
    settle_heads(config, f->name);
    settle_recurrence(config);
    settle_experts(config, f);
    settle_windows(config, f);
    settle_divisor(config, f);
    const struct tensor *const words = gguf_files_find(g, "token_embd.weight");
    if (words)
        json_object_set_new(config, "vocab_size", json_integer(words->shape[0]));
    json_object_set_new(config, "tie_word_embeddings",
                        json_boolean(!gguf_files_find(g, "output.weight")));
    if (f->bias_key)
        json_object_set_new(config, f->bias_key,
                            json_boolean(gguf_files_find(g, "blk.0.attn_q.bias") != NULL));
    if (f->ff_bias_key && gguf_files_find(g, "blk.0.ffn_up.bias"))
        json_object_set_new(config, f->ff_bias_key, json_true());
    value = json_object_get(g->keys, "general.name");
    if (json_is_string(value))
        json_object_set_new(config, "_name_or_path", json_incref(value));
    return config;
}

/* ---- all ---------------------------------------------------------------------------------- */

static enum status unknown_family(const json_t *keys, const char *path, struct err *e)
{
    const char *const name = json_string_value(json_object_get(keys, "general.architecture"));

    return fail(e, E_IO,
                "checkpoint %s: general.architecture \"%.40s\" is not read from GGUF  -> use the "
                "folder it was made of",
                path, name ? name : "");
}

/* Names and config.json of open files. */
static enum status translate(struct gguf_files *g, const struct gguf_family *f, json_t **config,
                             const char *path, struct err *e)
{
    *config = make_config(f, g);
    for (int k = 0; k < g->n; k++)
        for (int i = 0; i < g->file[k].n_tensors; i++)
            rename_tensor(&g->file[k].tensors[i], f);
    TRY(gguf_rope_put(*config, g->keys, f->name, g->file, g->n, path, e));
    settle_yarn(*config, f);
    return OK;
}

enum status gguf_model_open(struct shards *s, json_t **config, struct gguf_form *form,
                            const char *path, struct err *e)
{
    struct gguf_files g;

    *s = (struct shards){0};
    *config = NULL;
    TRY(gguf_files_open(&g, path, e));
    const struct gguf_family *const f =
        gguf_family_find(json_string_value(json_object_get(g.keys, "general.architecture")));
    enum status st = f ? translate(&g, f, config, path, e) : unknown_family(g.keys, path, e);
    if (f && st == OK) {
        *form = f->form;
        form->computed = true;
        st = shards_take(s, g.file, g.n, path, e);
        g.file = NULL;
    }
    gguf_files_close(&g);
    if (st != OK) {
        json_decref(*config);
        *config = NULL;
    }
    return st;
}

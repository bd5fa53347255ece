/* SPDX-License-Identifier: MIT
 *
 * Names of GGUF, of tensors and of keys, and those that the same things have in folders. A family
 * is rows of them. */
#include "gguf_model.h"

#include "gguf_rope.h"
#include "model_type.h"
#include "variants/base/gguf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Patterns as of struct tensor_row; keys without the family's name in front. */
struct names {
    const char *gguf, *folder;
};

static const struct names llama_tensors[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
    {"blk.*.attn_norm", "model.layers.*.input_layernorm"},
    {"blk.*.ffn_norm", "model.layers.*.post_attention_layernorm"},
    {"blk.*.attn_q", "model.layers.*.self_attn.q_proj"},
    {"blk.*.attn_k", "model.layers.*.self_attn.k_proj"},
    {"blk.*.attn_v", "model.layers.*.self_attn.v_proj"},
    {"blk.*.attn_output", "model.layers.*.self_attn.o_proj"},
    {"blk.*.attn_q_norm", "model.layers.*.self_attn.q_norm"},
    {"blk.*.attn_k_norm", "model.layers.*.self_attn.k_norm"},
    {"blk.*.ffn_gate", "model.layers.*.mlp.gate_proj"},
    {"blk.*.ffn_up", "model.layers.*.mlp.up_proj"},
    {"blk.*.ffn_down", "model.layers.*.mlp.down_proj"},
    {0},
};

static const struct names llama_keys[] = {
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"rope.freq_base", "rope_theta"},
    {"context_length", "max_position_embeddings"},
    {"attention.sliding_window", "sliding_window"},
    {0},
};

static const struct names phi3_tensors[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
    {"blk.*.attn_norm", "model.layers.*.input_layernorm"},
    {"blk.*.ffn_norm", "model.layers.*.post_attention_layernorm"},
    {"blk.*.attn_qkv", "model.layers.*.self_attn.qkv_proj"},
    {"blk.*.attn_output", "model.layers.*.self_attn.o_proj"},
    {"blk.*.ffn_up", "model.layers.*.mlp.gate_up_proj"},
    {"blk.*.ffn_down", "model.layers.*.mlp.down_proj"},
    {0},
};

static const struct names gpt2_tensors[] = {
    {"token_embd", "wte"},
    {"position_embd", "wpe"},
    {"output_norm", "ln_f"},
    {"output", "lm_head"},
    {"blk.*.attn_norm", "h.*.ln_1"},
    {"blk.*.ffn_norm", "h.*.ln_2"},
    {"blk.*.attn_qkv", "h.*.attn.c_attn"},
    {"blk.*.attn_output", "h.*.attn.c_proj"},
    {"blk.*.ffn_up", "h.*.mlp.c_fc"},
    {"blk.*.ffn_down", "h.*.mlp.c_proj"},
    {0},
};

static const struct names gpt2_keys[] = {
    {"embedding_length", "n_embd"},
    {"block_count", "n_layer"},
    {"feed_forward_length", "n_inner"},
    {"attention.head_count", "n_head"},
    {"attention.layer_norm_epsilon", "layer_norm_epsilon"},
    {"context_length", "n_positions"},
    {0},
};

static const struct gguf_family {
    const char *name;
    const struct names *tensors, *keys;
    struct gguf_form form;
    bool has_bias_key; /* whether queries, keys and values have biases is a key of the folder's */
} families[] = {
    {"llama", llama_tensors, llama_keys, {.adjacent = true}, true},
    {"qwen2", llama_tensors, llama_keys, {.adjacent = false}, false},
    {"qwen3", llama_tensors, llama_keys, {.adjacent = false}, true},
    {"phi3", phi3_tensors, llama_keys, {.adjacent = false}, false},
    {"gpt2", gpt2_tensors, gpt2_keys, {.upright = true}, false},
};

static const struct gguf_family *family_of(const json_t *keys)
{
    const char *const name = json_string_value(json_object_get(keys, "general.architecture"));

    for (size_t i = 0; name && i < ARRAY_LEN(families); i++)
        if (strcmp(families[i].name, name) == 0)
            return &families[i];
    return NULL;
}

/* ---- tensors ------------------------------------------------------------------------------ */

/* What is not known keeps its name, by which it is refused. */
static void rename_tensor(struct tensor *t, const struct gguf_family *f)
{
    char name[TENSOR_NAME];
    const char *rest;
    int layer;

    for (const struct names *n = f->tensors; n->gguf; n++)
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
    for (const struct names *n = f->keys; n->gguf; n++)
        if (strcmp(n->gguf, key) == 0) {
            snprintf(to, TENSOR_NAME, "%s", n->folder);
            return;
        }
    snprintf(to, TENSOR_NAME, "%s", key);
    for (char *at = to; *at; at++)
        *at = *at == '.' ? '_' : *at;
}

/* config.json as it is made. A value that cannot be kept for want of memory must not be one that is
 * absent. */
struct made {
    json_t *config;
    bool starved;
};

static void put(struct made *m, const char *key, json_t *value)
{
    m->starved = json_object_set_new(m->config, key, value) != 0 || m->starved;
}

static json_int_t whole(const struct made *m, const char *key)
{
    return json_integer_value(json_object_get(m->config, key));
}

/* Take out sizes of heads that follow from others; a part of a head that is rotated is a share. */
static void settle_heads(struct made *m, const char *family)
{
    const json_int_t head = whole(m, "head_dim"), heads = whole(m, "num_attention_heads");
    const json_int_t wide = head ? head : heads > 0 ? whole(m, "hidden_size") / heads : 0;
    const json_int_t rotated = whole(m, "rope_dimension_count");

    if (whole(m, "attention_value_length") == wide)
        json_object_del(m->config, "attention_value_length");
    if (strcmp(family, "gpt2") == 0 || wide < 1 || rotated < 1)
        return;
    json_object_del(m->config, "rope_dimension_count");
    if (rotated != wide) /* rounded up: the next lower whole number of its product is meant */
        put(m, "partial_rotary_factor",
            json_real(nextafter((double)rotated / (double)wide, INFINITY)));
}

static struct made make_config(const struct gguf_family *f, const json_t *keys,
                               const struct safetensors *s)
{
    const size_t n = strlen(f->name);
    struct made m = {.config = json_object()};
    char name[TENSOR_NAME];
    const char *key;
    json_t *value;

    put(&m, "model_type", json_string(f->name));
    json_object_foreach((json_t *)keys, key, value)
    {
        const bool own = strncmp(key, f->name, n) == 0 && key[n] == '.';
        if (!own || gguf_rope_is_key(key + n + 1))
            continue;
        folder_key(name, f, key + n + 1);
        put(&m, name, json_incref(value));
    }
    settle_heads(&m, f->name);
    const struct tensor *const words =
        safetensors_find(s, f->form.upright ? "wte.weight" : "model.embed_tokens.weight");
    if (whole(&m, "sliding_window") == 0) /* none */
        json_object_del(m.config, "sliding_window");
    if (words)
        put(&m, "vocab_size", json_integer(words->shape[0]));
    put(&m, "tie_word_embeddings", json_boolean(!safetensors_find(s, "lm_head.weight")));
    if (f->has_bias_key)
        put(&m, "attention_bias",
            json_boolean(safetensors_find(s, "model.layers.0.self_attn.q_proj.bias") != NULL));
    value = json_object_get(keys, "general.name");
    if (json_is_string(value))
        put(&m, "_name_or_path", json_incref(value));
    return m;
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

enum status gguf_model_open(struct shards *s, json_t **config, struct gguf_form *form,
                            const char *path, struct err *e)
{
    struct safetensors file;
    json_t *keys;

    *s = (struct shards){0};
    *config = NULL;
    enum status st = gguf_open(&file, &keys, path, e);
    if (st != OK)
        return st;
    const struct gguf_family *const f = family_of(keys);
    if (!f) {
        st = unknown_family(keys, path, e);
        safetensors_close(&file);
    } else {
        *form = f->form;
        for (int i = 0; i < file.n_tensors; i++)
            rename_tensor(&file.tensors[i], f);
        struct made made = make_config(f, keys, &file);
        *config = made.config;
        st = gguf_rope_put(made.config, keys, f->name, &file, path, e);
        if (st != OK)
            safetensors_close(&file);
        else
            st = shards_take(s, &file, path, e);
        if (st == OK && made.starved) {
            shards_close(s);
            st = fail(e, E_NOMEM, "checkpoint %s: no memory  -> free some", path);
        }
        if (st != OK) {
            json_decref(*config);
            *config = NULL;
        }
    }
    json_decref(keys);
    return st;
}

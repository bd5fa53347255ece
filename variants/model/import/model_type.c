/* SPDX-License-Identifier: MIT
 *
 * What families share. */
#include "model_type.h"

#include <stdio.h>
#include <string.h>

static const struct model_type *const model_types[] = {
    &model_type_gpt2,  &model_type_gpt_neox, &model_type_llama,      &model_type_mistral,
    &model_type_qwen2, &model_type_qwen3,    &model_type_transfo_xl,
};

const struct model_type *model_type_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(model_types); i++)
        if (strcmp(model_types[i]->name, name) == 0)
            return model_types[i];
    return NULL;
}

const char *model_type_names(void)
{
    return "gpt2, gpt_neox, llama, mistral, qwen2, qwen3 or transfo-xl";
}

/* ---- what is refused ---------------------------------------------------------------------- */

/* Absent, null, false, 0, an empty list or object: as if it were not there. */
static bool is_neutral(const json_t *value)
{
    return !value || json_is_null(value) || json_is_false(value) ||
           (json_is_number(value) && json_number_value(value) == 0) ||
           (json_is_string(value) && !*json_string_value(value)) ||
           (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

static bool begins_with(const char *key, const char *with)
{
    return strncmp(key, with, strlen(with)) == 0;
}

static void refuse_quantized(struct config_json *j, const json_t *how)
{
    const char *const method = json_string_value(json_object_get(how, "quant_method"));

    config_json_refuse(j,
                       "quantization_config (%.40s): not supported  -> the model it was made from",
                       method ? method : "unknown");
}

static void refuse_number(struct config_json *j, const char *key, const json_t *value)
{
    if (json_is_number(value))
        config_json_refuse(j, "%s %g: not supported  -> a dense model", key,
                           json_number_value(value));
    else
        config_json_refuse(j, "%s: not supported  -> a dense model", key);
}

void import_refuse_strangers(struct config_json *j)
{
    /* One expert, or a factor of 1, is none. */
    static const char *const counts[] = {"num_local_experts", "num_experts"};
    static const char *const factors[] = {"logits_scaling", "embedding_multiplier",
                                          "residual_multiplier", "attention_multiplier"};
    static const char *const others[] = {
        "attn_logit_softcapping", "final_logit_softcapping", "clip_qkv", "qk_layernorm", "alibi",
        "is_encoder_decoder"};
    const json_t *const how = config_json_at(j, "quantization_config");
    const char *key;
    json_t *value;

    if (!is_neutral(how))
        refuse_quantized(j, how);
    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        if (!is_neutral(config_json_at(j, counts[i])))
            refuse_number(j, counts[i], config_json_at(j, counts[i]));
    for (size_t i = 0; i < ARRAY_LEN(factors); i++) {
        const json_t *const x = config_json_at(j, factors[i]);
        if (x && !(json_is_number(x) && json_number_value(x) == 1))
            config_json_refuse(j, "%s: not supported  -> a model without it", factors[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (!is_neutral(config_json_at(j, others[i])))
            config_json_refuse(j, "%s: not supported  -> a model without it", others[i]);
    json_object_foreach(j->root, key,
                        value) if (!is_neutral(value) && (begins_with(key, "cross_attention") ||
                                                          begins_with(key, "adapter")))
        config_json_refuse(j, "%.60s: not supported  -> a model without it", key);
    if (config_json_flag(j, "add_cross_attention", false))
        config_json_refuse(j, "%s with add_cross_attention: not supported  -> a decoder without it",
                           j->family);
}

/* ---- what is said ------------------------------------------------------------------------- */

void import_put_common(struct config_json *j, const char *variant)
{
    config_json_put(j, "variant", "%s", variant);
    config_json_put(j, "emb_scale", "1");
    config_json_put(j, "out_bias", "0");
    config_json_put(j, "final_ln", "1");
    config_json_put(j, "causal", "1");
}

void import_put_ffn(struct config_json *j, const char *key, const char *absent,
                    const struct act_name *names)
{
    const char *const word = config_json_word(j, key, absent);
    char known[128] = "";

    for (const struct act_name *a = names; a->published; a++) {
        const size_t n = strlen(known);
        if (strcmp(a->published, word) == 0) {
            config_json_put(j, "ffn", "%s", a->ours);
            return;
        }
        snprintf(known + n, sizeof(known) - n, "%s%s", n ? ", " : "", a->published);
    }
    config_json_refuse(j, "%s with %s %.40s: not supported  -> %s", j->family, key, word, known);
}

/* Of scaling, which must say how much. */
static double scaling_number(struct config_json *j, const json_t *how, const char *kind,
                             const char *key)
{
    const json_t *const value = json_object_get(how, key);
    const double x = json_number_value(value);

    if (!(json_is_number(value) && x > 0 && x <= 1 << 24))
        config_json_refuse(j,
                           "%s with rope_scaling %s: %s is missing or no number above 0  -> a "
                           "complete config",
                           j->family, kind, key);
    return x;
}

/* The object that says how frequencies are changed, and its word; "default" for none. */
static const char *scaling_kind(struct config_json *j, const json_t **how)
{
    static const char *const places[] = {"rope_parameters", "rope_scaling"};

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        const json_t *kind;
        *how = config_json_at(j, places[i]);
        if (*how && !json_is_object(*how))
            config_json_refuse(j, "%s is not an object  -> a published config", places[i]);
        if (!(kind = json_object_get(*how, "rope_type")))
            kind = json_object_get(*how, "type");
        if (json_is_string(kind))
            return json_string_value(kind);
        if (i == 1 && *how && json_object_size(*how) > 0)
            config_json_refuse(j, "rope_scaling has no rope_type  -> a complete config");
    }
    return "default";
}

/* One base for all layers. */
static void refuse_layers(struct config_json *j)
{
    json_t *const how = json_object_get(j->root, "rope_parameters");
    const char *key;
    json_t *value;

    json_object_foreach(how, key, value) if (json_is_object(value))
        config_json_refuse(j,
                           "%s with rope_parameters of \"%.40s\" alone: not supported  -> the "
                           "same in all layers",
                           j->family, key);
}

static void put_scaling(struct config_json *j)
{
    const json_t *how;
    const char *const kind = scaling_kind(j, &how);
    const bool llama3 = strcmp(kind, "llama3") == 0;

    if (strcmp(kind, "default") == 0)
        return;
    if (!llama3 && strcmp(kind, "linear") != 0) {
        config_json_refuse(j,
                           "%s with rope_scaling %.40s: not supported  -> none, linear or llama3",
                           j->family, kind);
        return;
    }
    config_json_put(j, "rope_scaling", "%s", kind);
    const double factor = scaling_number(j, how, kind, "factor");
    if (factor < 1)
        config_json_refuse(j, "%s with rope_scaling %s: factor %g  -> 1 or more", j->family, kind,
                           factor);
    config_json_put(j, "rope_factor", "%.9g", factor);
    if (!llama3)
        return;
    const double low = scaling_number(j, how, kind, "low_freq_factor");
    const double high = scaling_number(j, how, kind, "high_freq_factor");
    const double original = scaling_number(j, how, kind, "original_max_position_embeddings");
    if (j->st == OK && high <= low)
        config_json_refuse(j, "%s with high_freq_factor %g, low_freq_factor %g  -> more", j->family,
                           high, low);
    config_json_put(j, "rope_low", "%.9g", low);
    config_json_put(j, "rope_high", "%.9g", high);
    config_json_put(j, "rope_original", "%.0f", original);
}

void import_put_rotary(struct config_json *j, const char *base_key, int dim)
{
    enum { MOST = 1 << 30 };
    const double base = config_json_at(j, "rope_theta")
                            ? config_json_real(j, "rope_theta", 0, 1.0001, (double)MOST * MOST)
                            : config_json_real(j, base_key, 10000, 1.0001, (double)MOST * MOST);

    refuse_layers(j);
    config_json_put(j, "scheme", "rope");
    config_json_put(j, "rope_base", "%.17g", base);
    config_json_put(j, "rope_dim", "%d", dim);
    config_json_put(j, "rope_pairs", "half");
    put_scaling(j);
}

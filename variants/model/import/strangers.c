/* SPDX-License-Identifier: MIT
 *
 * Keys of config.json that no family read. Most are of other things: who made it, tokens, training,
 * tasks. One that could say what is computed is refused by name, for the publisher's program, or
 * what a model was trained with, may do what we would not. */
#include "model_type.h"

#include <strings.h>

/* Words of which keys are made that change the arithmetic in some published model. */
static const char words[] =
    "act activation adapter adapters alibi alpha altup attention attn audio beta bias biases "
    "bidirectional block blocks cap causal channels chunk clamp clip clipping compress compression "
    "conv convolution cross ctx d decay decoder delta depth dff dilation dim dims emb embd embed "
    "embedding embeddings embeds encoder eps epsilon expand expansion expert experts factor "
    "factors feedforward ff ffn freq frequency gamma gate gated gates gating gelu head heads "
    "hidden interleave interleaved intermediate kernel kv latent latents laurel layer layernorm "
    "layers limit linear logit logits loops lora mamba memory mixer mixture mla mlp moe mrope "
    "mscale mtp multiplier multipliers mup nextn nope norm normalization normalize normalized "
    "norms ntk offset parallel patch pool pooling pos position positional positions postnorm "
    "prenorm proj projection qk qkv quant quantization quantize quantized query rank recurrent "
    "relative relu res residual rms rmsnorm rope rotary routed router routing scalar scale scaled "
    "scales scaling share shared silu sink sinks sliding softcap softcapping softcaps softmax "
    "sparse sparsity ssm state stride swa swiglu swish tanh text theta tie tied topk untie untied "
    "vision width window windows xpos yarn";

/* Words of keys that are of training and of other tasks, whatever else they name. */
static const char aside[] = "classifier dropatt dropout init initializer layerdrop pdrop summary";

/* Keys with such words that say how something is computed, not what. */
static const char harmless[] =
    "_attn_implementation _attn_implementation_autoset _flash_attn_2_enabled attn_implementation "
    "chunk_size_feed_forward encoder_no_repeat_ngram_size is_decoder kv_cache_dtype model_parallel "
    "neftune_noise_alpha output_hidden_states reorder_and_upcast_attn use_flash_attention "
    "use_flash_attn";

/* A factor of 1 is none. */
static const char factors[] =
    "attention_multiplier embedding_multiplier logits_scaling residual_multiplier";

/* Is a word, or a whole key, in a list of them? In letters of either size. */
static bool is_in(const char *list, const char *word, size_t length)
{
    for (const char *at = list; *at; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        if (n == length && strncasecmp(at, word, n) == 0)
            return true;
        at += n;
    }
    return false;
}

/* Is one of a key's words? */
static bool has_word(const char *key, const char *list)
{
    for (const char *at = key; *at; at += strspn(at, "_.- ")) {
        const size_t n = strcspn(at, "_.- ");
        if (n > 0 && is_in(list, at, n))
            return true;
        at += n;
    }
    return false;
}

static bool changes_arithmetic(const char *key)
{
    return has_word(key, words) && !has_word(key, aside) && !is_in(harmless, key, strlen(key));
}

/* null, false, 0, an empty list or object: as if it were not there. */
static bool is_neutral(const char *key, const json_t *value)
{
    const double x = json_number_value(value);
    const bool factor = is_in(factors, key, strlen(key));

    return json_is_null(value) || json_is_false(value) ||
           (json_is_number(value) && x == (factor ? 1 : 0)) ||
           (json_is_string(value) && !*json_string_value(value)) ||
           (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

/* Unless the family reads its blocks. */
static void refuse_quantized(struct config_json *j)
{
    if (config_json_was_read(j, "quantization_config"))
        return;
    const json_t *const how = config_json_at(j, "quantization_config");
    const char *const method = json_string_value(json_object_get(how, "quant_method"));

    if (how) /* an empty one is an error to the publisher's program, too */
        config_json_refuse(
            j, "quantization_config (%.40s): not supported  -> use the model it was made from",
            method ? method : "unknown");
}

void import_refuse_strangers(struct config_json *j)
{
    const char *key;
    json_t *value;

    refuse_quantized(j);
    if (!config_json_flag(j, "is_causal", true))
        import_refuse(j, "is_causal false: not supported  -> use true");
    json_object_foreach(j->root, key, value)
    {
        char text[64];
        if (config_json_was_read(j, key) || !changes_arithmetic(key) || is_neutral(key, value))
            continue;
        config_json_text(text, sizeof(text), value);
        import_refuse(j,
                      "%.60s %s: %s has no such key, and it may change what is computed  -> use a "
                      "model without it, or take the key out if nothing uses it",
                      key, text, j->family);
    }
}

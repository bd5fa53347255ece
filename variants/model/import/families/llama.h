/* SPDX-License-Identifier: MIT
 *
 * What the families after llama share with it. */
#pragma once

#include "variants/model/config/choices.h"
#include "variants/model/import/model_type.h"

/* clang-format off */
#define LLAMA_ATTENTION                                                                            \
    {.ours = "layers.*.attn.q", .published = "layers.*.self_attn.q_proj"},                         \
    {.ours = "layers.*.attn.k", .published = "layers.*.self_attn.k_proj"},                         \
    {.ours = "layers.*.attn.v", .published = "layers.*.self_attn.v_proj"},                         \
    {.ours = "layers.*.attn.o", .published = "layers.*.self_attn.o_proj"}

#define QK_NORMS                                                                                   \
    {.ours = "layers.*.attn.q_norm", .published = "layers.*.self_attn.q_norm"},                    \
    {.ours = "layers.*.attn.k_norm", .published = "layers.*.self_attn.k_norm"}

#define LLAMA_FEED_FORWARD                                                                         \
    {.ours = "layers.*.ff.g", .published = "layers.*.mlp.gate_proj"},                              \
    {.ours = "layers.*.ff.1", .published = "layers.*.mlp.up_proj"},                                \
    {.ours = "layers.*.ff.2", .published = "layers.*.mlp.down_proj"}

/* The tensors of all experts in one: of transformers in memory, and in files written so. */
#define STACKED_EXPERT(name, in, nth, of)                                                          \
    {.ours = "layers.*.ff.e." name, .published = "layers.*.mlp.experts." in, .part = nth,          \
     .parts = of, .bare_rest = true, .if_there = true}
/* Those, both maps alone as in GGUF files, or a tensor for each expert. */
#define EXPERTS_OF(in, gate, up, down)                                                             \
    STACKED_EXPERT("g", "gate_proj", 0, 1),                                                        \
    STACKED_EXPERT("1", "up_proj", 0, 1),                                                          \
    STACKED_EXPERT("g", "gate_up_proj", 0, 2),                                                     \
    STACKED_EXPERT("1", "gate_up_proj", 1, 2),                                                     \
    STACKED_EXPERT("2", "down_proj", 0, 1),                                                        \
    {.ours = "layers.*.ff.e.g", .published = in "experts.*." gate, .layout = LAYOUT_EXPERTS},      \
    {.ours = "layers.*.ff.e.1", .published = in "experts.*." up, .layout = LAYOUT_EXPERTS},        \
    {.ours = "layers.*.ff.e.2", .published = in "experts.*." down, .layout = LAYOUT_EXPERTS}
#define EXPERTS                                                                                    \
    {.ours = "layers.*.ff.router", .published = "layers.*.mlp.gate"},                              \
    EXPERTS_OF("layers.*.mlp.", "gate_proj", "up_proj", "down_proj")
#define SHARED_EXPERT(in)                                                                          \
    {.ours = "layers.*.ff.shared.g", .published = "layers.*.mlp." in ".gate_proj"},                \
    {.ours = "layers.*.ff.shared.1", .published = "layers.*.mlp." in ".up_proj"},                  \
    {.ours = "layers.*.ff.shared.2", .published = "layers.*.mlp." in ".down_proj"}

#define LLAMA_OUTPUT                                                                               \
    {.ours = "out", .published = "lm_head", .bare = true, .tie = TIE_WORDS, .with = "embed_tokens"}

#define GATE_UP                                                                                    \
    {.ours = "layers.*.ff.g", .published = "layers.*.mlp.gate_up_proj", .part = 0, .parts = 2},    \
    {.ours = "layers.*.ff.1", .published = "layers.*.mlp.gate_up_proj", .part = 1, .parts = 2},    \
    {.ours = "layers.*.ff.2", .published = "layers.*.mlp.down_proj"}

/* All but the feed-forward network; a row before it wins. */
#define LLAMA_REST                                                                                 \
    {.ours = "embed", .published = "embed_tokens"},                                                \
    {.ours = "layers.*.ln1", .published = "layers.*.input_layernorm"},                             \
    {.ours = "layers.*.ln2", .published = "layers.*.post_attention_layernorm"},                    \
    {.ours = "final_ln", .published = "norm"},                                                     \
    LLAMA_ATTENTION,                                                                               \
    LLAMA_OUTPUT

/* Whether words are tied, and the publisher's epsilon. */
#define LLAMA_SIZES(tied)                                                                          \
    {"hidden_size", "d_model", KEY_WHOLE, REQUIRED, 1, MAX_WIDTH},                                 \
    {"num_attention_heads", "n_head", KEY_WHOLE, REQUIRED, 1, MAX_WIDTH},                          \
    {"num_hidden_layers", "n_layer", KEY_WHOLE, REQUIRED, 1, MAX_LAYERS},                          \
    {"vocab_size", "vocab", KEY_WHOLE, REQUIRED, 1, MAX_WIDTH},                                    \
    {"tie_word_embeddings", "tied", KEY_FLAG, tied, 0, 1}
#define LLAMA_KEYS_BUT_INNER(eps, tied)                                                            \
    LLAMA_SIZES(tied),                                                                             \
    {"rms_norm_eps", "ln_eps", KEY_REAL, eps, 0, 1}
#define LLAMA_KEYS(eps, tied)                                                                      \
    LLAMA_KEYS_BUT_INNER(eps, tied),                                                               \
    {"intermediate_size", "d_inner", KEY_WHOLE, REQUIRED, 1, 4 * MAX_WIDTH}
/* clang-format on */

/* Publishers' sizes, for config files that lack them. */
#define USUAL_SIZES(width, inner, layers, heads, words)                                            \
    static const struct usual_size usual_sizes[] = {{"hidden_size", width},                        \
                                                    {"intermediate_size", inner},                  \
                                                    {"num_hidden_layers", layers},                 \
                                                    {"num_attention_heads", heads},                \
                                                    {"vocab_size", words},                         \
                                                    {NULL, 0}}

#define LLAMA_TYPE(type, ...)                                                                      \
    const struct model_type model_type_##type = {.name = #type,                                    \
                                                 .prefix = "model.",                               \
                                                 .embedding = "embed_tokens.weight",               \
                                                 .layers = "num_hidden_layers",                    \
                                                 .context = "max_position_embeddings",             \
                                                 __VA_ARGS__}

/* Heads and the kind of norm, without its place, rotation and activation. kv_absent: REQUIRED, or 0 = as many as heads, as null;
 * head_absent: 0 = by the width, as null. Returns the width of a head. */
int import_put_heads(struct config_json *j, const char *variant, int kv_absent, int head_absent);

/* A mixture of experts in place of the feed-forward network of `act`: so many, of which a token takes
 * some (keys and the publisher's defaults), whose gates are divided by their sum or not. Keys that
 * only say how it was trained are read. */
struct experts {
    const char *count, *taken;
    int usual_count, usual_taken; /* REQUIRED = none */
    bool norms;
    bool may_lack; /* 0 of them: every layer is dense (import_put_sparse_layers) */
};
void import_put_experts(struct config_json *j, const struct experts *x);
/* Two names of their number. */
extern const struct alias experts_aliases[];
/* A window, where the file has one. */
void import_put_window(struct config_json *j);
/* Windows in some layers only, as qwen2 has a switch for. */
void import_refuse_some_windows(struct config_json *j);
/* After its experts: dense[l] of MAX_LAYERS says which layers have a feed-forward network of
 * intermediate_size (the publisher's default) in place of them. */
void import_put_dense_layers(struct config_json *j, const bool *dense, int usual_inner);
/* Likewise: those of mlp_only_layers, and all but every decoder_sparse_step-th. */
void import_put_sparse_layers(struct config_json *j, int usual_inner);

/* granite's, of the embedding, of what sub-layers add, of scores; a divisor of logits. */
void import_put_factors(struct config_json *j);
/* Steps of mamba2 that are clamped. */
void import_refuse_step_limits(struct config_json *j);

/* One kind of attention in all layers. */
void import_check_layer_types(struct config_json *j, const char *wanted);

/* Layers that see a window, and others; where the file does not say which, layer l, from 0, sees
 * all if (l + 1) % period is 0. full[l] of MAX_LAYERS says so; puts layer_windows. */
void import_put_layer_types(struct config_json *j, int window, int period, bool *full);
/* Layers of a mixer, which the file calls `word`, and layers that attend, as above; puts layer_mixers. */
void import_put_stack(struct config_json *j, const char *mixer, const char *word, int period);
/* A number for layers that see a window, another for those that see all, as `key` of each layer. */
void import_put_by_layer(struct config_json *j, const char *key, const bool *full, double of_window,
                         double of_full);

extern const struct tensor_row llama_tensors[];
extern const struct key_row llama_keys[];
extern const struct act_name llama_acts[];
extern const struct rotary llama_rotary; /* of whole heads */

struct longrope {
    const json_t *how;  /* the object that describes it */
    const char *name;   /* of that */
    int pairs;          /* of a head that are rotated */
    int usual_original; /* tokens of the training where no key says it, 0 = the context */
};

/* Say both lists, and what cosines and sines are multiplied by; refuse what contradicts itself. */
void import_put_longrope(struct config_json *j, const struct longrope *l);

/* A number of that object, `absent` without the key. */
double import_number_in(struct config_json *j, const json_t *object, const char *name,
                        const char *key, double absent, double least, double most);

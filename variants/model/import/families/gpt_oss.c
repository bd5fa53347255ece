/* SPDX-License-Identifier: MIT
 *
 * gpt_oss (OpenAI 2025, arXiv:2508.10925): a sink in each head's softmax, windows in every other
 * layer, biases everywhere, and experts of clamped gated units, whose router has a bias, too. */
#include "llama.h"

/* clang-format off */
static const struct tensor_row tensors[] = {
    {.ours = "layers.*.attn.sink", .published = "layers.*.self_attn.sinks"},
    {.ours = "layers.*.ff.router", .published = "layers.*.mlp.router"},
#define EXPERT(name, rest, in, nth, of)                                                            \
    {.ours = "layers.*.ff.e." name "." rest, .published = "layers.*.mlp.experts." in,              \
     .layout = LAYOUT_FUSED, .part = nth, .parts = of, .bare_rest = true}
#define BLOCKS(name, in, nth, of)                                                                  \
    {.ours = "layers.*.ff.e." name ".weight", .published = "layers.*.mlp.experts." in "_blocks",   \
     .scales = "layers.*.mlp.experts." in "_scales", .layout = LAYOUT_MXFP4, .part = nth,          \
     .parts = of, .bare_rest = true, .if_there = true}
    BLOCKS("g", "gate_up_proj", 0, 2),
    BLOCKS("1", "gate_up_proj", 1, 2),
    BLOCKS("2", "down_proj", 0, 1),
/* Of GGUF files, each map alone. */
#define ALONE(name, rest, in)                                                                      \
    {.ours = "layers.*.ff.e." name "." rest, .published = "layers.*.mlp.experts." in,              \
     .bare_rest = true, .if_there = true}
    ALONE("g", "weight", "gate_proj"),
    ALONE("g", "bias", "gate_proj_bias"),
    ALONE("1", "weight", "up_proj"),
    ALONE("1", "bias", "up_proj_bias"),
    ALONE("2", "weight", "down_rows"),
    EXPERT("g", "weight", "gate_up_proj", 0, 2),
    EXPERT("g", "bias", "gate_up_proj_bias", 0, 2),
    EXPERT("1", "weight", "gate_up_proj", 1, 2),
    EXPERT("1", "bias", "gate_up_proj_bias", 1, 2),
    EXPERT("2", "weight", "down_proj", 0, 1),
    EXPERT("2", "bias", "down_proj_bias", 0, 1),
    LLAMA_REST,
    {0},
};
/* clang-format on */

static const struct key_row keys[] = {
    LLAMA_KEYS(1e-5, 0),
    {"attention_bias", "attn_bias", KEY_FLAG, 1, 0, 1},
    {"swiglu_alpha", "moe_beta", KEY_REAL, 1.702, 1e-6, 1 << 20},
    {"swiglu_limit", "moe_limit", KEY_REAL, 7, 1e-6, 1 << 20},
    {0},
};

static const struct rotary rotary = {.usual_base = 150000, .whole = true};

/* What the publisher's program takes where a file says nothing. */
static void put_usual_scaling(struct config_json *j)
{
    if (json_object_get(j->root, "rope_parameters") || json_object_get(j->root, "rope_scaling"))
        return;
    json_object_set_new(j->root, "rope_scaling",
                        json_pack("{s:s, s:f, s:f, s:f, s:b, s:i}", "rope_type", "yarn", "factor",
                                  32.0, "beta_fast", 32.0, "beta_slow", 1.0, "truncate", 0,
                                  "original_max_position_embeddings", 4096));
}

/* Which tensors are in blocks is seen from their names: modules_to_not_convert says nothing more. */
static void take_mxfp4(struct config_json *j)
{
    const json_t *const how = json_object_get(j->root, "quantization_config");
    const char *const method = json_string_value(json_object_get(how, "quant_method"));

    if (method && strcmp(method, "mxfp4") == 0)
        config_json_at(j, "quantization_config");
}

static void more(struct config_json *j)
{
    enum { KV_HEADS = 8, HEAD = 64, WINDOW = 128, PERIOD = 2, TAKEN = 4 };
    static const struct experts experts = {"num_experts", "num_experts_per_tok", 128, TAKEN,
                                           .norms = true};
    const int window = config_json_whole(j, "sliding_window", WINDOW, 1, MAX_DISTANCE);
    const int taken = config_json_whole(j, "num_experts_per_tok", TAKEN, 1, MAX_WIDTH);
    bool full[MAX_LAYERS] = {false};

    take_mxfp4(j);
    put_usual_scaling(j);
    import_put_rotary(j, &rotary, import_put_heads(j, "sink", KV_HEADS, HEAD));
    import_put_layer_types(j, window, PERIOD, full);
    config_json_put(j, "norm", "pre");
    import_put_experts(j, &experts);
    if (config_json_whole(j, "experts_per_token", taken, 1, MAX_WIDTH) != taken)
        import_refuse(j, "experts_per_token and another num_experts_per_tok  -> use one of them");
    SAY(j, {"sink", "1"}, {"ff_bias", "1"}, {"moe_act", "swiglu_clamped"}, {"router_bias", "1"});
}

LLAMA_TYPE(gpt_oss, .usual_context = 131072, .aliases = experts_aliases, ROWS_OF_FILE);

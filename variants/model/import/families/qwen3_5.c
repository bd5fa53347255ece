/* SPDX-License-Identifier: MIT
 *
 * The dense text model of qwen3_5 (2026): layers of the gated delta rule (Yang et al. 2024,
 * arXiv:2412.06464), whose queries and keys serve several heads of values each, and after every
 * third one of attention with a gate (Qiu et al. 2025, arXiv:2505.06708), normed queries and keys,
 * and a part of each head rotated. Weights of norms are added to 1, but not those of the rule's.
 * qwen3_next (2025) is the same with experts, and one map for all that a key's head serves. */
#include "llama.h"
#include "variants/steps/mix.h"

/* Rows of queries, keys and values of a recurrent layer. */
static int64_t rows_before(const struct config *c, int part)
{
    const struct mix *const m = config_numbers(c, SLOT_MIXER);
    const int64_t keys = (int64_t)(m->key_heads ? m->key_heads : c->recurrent.H) * c->recurrent.dh;
    const int64_t values = (int64_t)c->recurrent.H * c->recurrent.dv;

    return (const int64_t[]){0, keys, 2 * keys, 2 * keys + values}[part];
}

#define RULE(name, in)                                                                             \
    .ours = "layers.*.attn." name, .published = "layers.*.linear_attn." in, .of = RECURS
#define QKV(name, nth)                                                                             \
    {                                                                                              \
        RULE(name, "in_proj_qkv"), .layout = LAYOUT_STACK, .part = nth, .parts = 3,                \
                                   .before = rows_before                                           \
    }
#define ATTENTION(name, in) .ours = "layers.*.attn." name, .published = "layers.*.self_attn." in

/* clang-format off */
/* All but the maps that the rule's operands are made by, and the feed-forward network. */
#define LAYERS                                                                                     \
    {.ours = "layers.*.ln1", .published = "layers.*.input_layernorm", .plus_one = true},           \
    {.ours = "layers.*.ln2", .published = "layers.*.post_attention_layernorm", .plus_one = true},  \
    {RULE("conv", "conv1d"), .taps = true},                                                        \
    {RULE("dt_bias", "dt_bias")},                                                                  \
    {RULE("A_log", "A_log")},                                                                      \
    {RULE("norm", "norm")},                                                                        \
    {RULE("o", "out_proj")},                                                                       \
    {ATTENTION("q", "q_proj"), .layout = LAYOUT_HEADS, .part = 0, .parts = 2},                     \
    {ATTENTION("g", "q_proj"), .layout = LAYOUT_HEADS, .part = 1, .parts = 2},                     \
    {ATTENTION("q_norm", "q_norm"), .plus_one = true},                                             \
    {ATTENTION("k_norm", "k_norm"), .plus_one = true},                                             \
    {.ours = "final_ln", .published = "norm", .plus_one = true},                                   \
    LLAMA_REST

static const struct tensor_row tensors[] = {
    QKV("q", 0),
    QKV("k", 1),
    QKV("v", 2),
    {RULE("beta", "in_proj_b")},
    {RULE("dt", "in_proj_a")},
    {RULE("g", "in_proj_z")},
    LAYERS,
    LLAMA_FEED_FORWARD,
    {0},
};

/* Rows of a key's head: its queries and keys, then the values and gates of the heads it serves. */
static int served_heads(const struct config *c)
{
    const struct mix *const m = config_numbers(c, SLOT_MIXER);

    return m->key_heads ? m->key_heads : c->recurrent.H;
}

static int64_t qkvz_before(const struct config *c, int part)
{
    const int64_t key = c->recurrent.dh;
    const int64_t values = (int64_t)c->recurrent.H / served_heads(c) * c->recurrent.dv;

    return (const int64_t[]){0, key, 2 * key, 2 * key + values, 2 * (key + values)}[part];
}

static int64_t ba_before(const struct config *c, int part)
{
    return (int64_t)part * (c->recurrent.H / served_heads(c));
}

#define OF_HEADS(name, in, rows, nth, of)                                                          \
    {RULE(name, in), .layout = LAYOUT_HEADS, .part = nth, .parts = of, .before = rows,             \
     .heads = served_heads}

static const struct tensor_row next_tensors[] = {
    OF_HEADS("q", "in_proj_qkvz", qkvz_before, 0, 4),
    OF_HEADS("k", "in_proj_qkvz", qkvz_before, 1, 4),
    OF_HEADS("v", "in_proj_qkvz", qkvz_before, 2, 4),
    OF_HEADS("g", "in_proj_qkvz", qkvz_before, 3, 4),
    OF_HEADS("beta", "in_proj_ba", ba_before, 0, 2),
    OF_HEADS("dt", "in_proj_ba", ba_before, 1, 2),
    LAYERS,
    EXPERTS,
    SHARED_EXPERT("shared_expert"),
    {.ours = "layers.*.ff.shared_gate", .published = "layers.*.mlp.shared_expert_gate"},
    LLAMA_FEED_FORWARD,
    {0},
};
/* clang-format on */

#define RULE_KEYS                                                                                  \
    {"rms_norm_eps", "head_eps", KEY_REAL, 1e-6, 0, 1},                                            \
        {"linear_conv_kernel_dim", "conv_width", KEY_WHOLE, 4, 1, 256},                            \
    {                                                                                              \
        "linear_num_key_heads", "key_heads", KEY_WHOLE, 16, 1, MAX_WIDTH                           \
    }

static const struct key_row keys[] = {LLAMA_KEYS(1e-6, 0), RULE_KEYS, {0}};
static const struct key_row next_keys[] = {
    LLAMA_KEYS_BUT_INNER(1e-6, 0),
    RULE_KEYS,
    {"moe_intermediate_size", "d_inner", KEY_WHOLE, 512, 1, 4 * MAX_WIDTH},
    {"shared_expert_intermediate_size", "moe_shared", KEY_WHOLE, 512, 1, 4 * MAX_WIDTH},
    {0},
};

/* Sections of coordinates that turn with places in pictures turn alike in texts. */
static const char *const of_pictures[] = {"mrope_section", "mrope_interleaved", NULL};
static const struct rotary rotary = {.usual_share = 0.25, .idle = of_pictures};

/* All but the feed-forward network. */
static void put_layers(struct config_json *j, int kv_heads)
{
    enum { HEAD = 256, PERIOD = 4 };
    const int period = config_json_whole(j, "full_attention_interval", PERIOD, 1, MAX_LAYERS);
    const int heads = config_json_whole(j, "linear_num_value_heads", 32, 1, MAX_WIDTH);
    const int wide = config_json_whole(j, "linear_key_head_dim", 128, 1, MAX_WIDTH);
    const int values = config_json_whole(j, "linear_value_head_dim", 128, 1, MAX_WIDTH);
    const int served = config_json_whole(j, "linear_num_key_heads", 16, 1, MAX_WIDTH);
    const char *const act = config_json_word(j, "hidden_act", "silu");

    import_need_flag(j, "attention_bias", false);
    import_need_flag(j, "attn_output_gate", true);
    if (act && strcmp(act, "silu") != 0 && strcmp(act, "swish") != 0)
        import_refuse(j,
                      "hidden_act %.40s: it stands behind convolutions, too, where "
                      "only silu is supported  -> use silu",
                      act);
    SKIP(j, "mtp_num_hidden_layers", "mtp_use_dedicated_embeddings", "mamba_ssm_dtype");
    if (heads % served)
        import_refuse(j, "linear_num_key_heads %d of %d heads  -> use a divisor", served, heads);
    import_put_rotary(j, &rotary, import_put_heads(j, "qwen3-next", kv_heads, HEAD));
    import_put_stack(j, "gdn", "linear_attention", period);
    config_json_put(j, "layer_dims", "%d/%d/%d/%.9g", heads, wide, values, 1 / sqrt(wide));
    SAY(j, {"mixer", "gdn"}, {"out_gate", "swish"}, {"attn_gate", "elementwise"}, {"norm", "pre"},
        {"attn_bias", "0"}, {"qk_norm", "1"});
}

static void more(struct config_json *j)
{
    enum { KV_HEADS = 4 };

    put_layers(j, KV_HEADS);
    import_put_ffn(j, "hidden_act", "silu", llama_acts);
    config_json_put(j, "ff_bias", "0");
}

static void next(struct config_json *j)
{
    enum { KV_HEADS = 2, COUNT = 512, TAKEN = 10, INNER = 5632 };
    const struct experts experts = {"num_experts",
                                    "num_experts_per_tok",
                                    COUNT,
                                    TAKEN,
                                    config_json_flag(j, "norm_topk_prob", true),
                                    true};

    import_put_sparse_layers(j, INNER);
    put_layers(j, KV_HEADS);
    import_put_experts(j, &experts);
    config_json_put(j, "moe_shared_gate", "1");
}

LLAMA_TYPE(qwen3_5_text, .usual_context = 32768, .aside = "mtp.", ROWS_OF_FILE);
LLAMA_TYPE(qwen3_next, .usual_context = 32768, .aside = "mtp.", .aliases = experts_aliases,
           .keys = next_keys, .tensors = next_tensors, .more = next);

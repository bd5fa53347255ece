/* SPDX-License-Identifier: MIT
 *
 * Mixtures of experts of published models: mixtral (Jiang et al. 2024, arXiv:2401.04088), qwen2_moe
 * (Yang et al. 2024, arXiv:2407.10671) with an expert that serves every token, times a gate, and
 * qwen3_moe (2025, arXiv:2505.09388); and what their relatives share with them. */
#include "llama.h"

const struct alias experts_aliases[] = {{"num_experts", "num_local_experts"}, {0}};

/* Of experts, which feed-forward networks of gated units share with them. */
static void put_act(struct config_json *j, const char *key)
{
    const char *const act = config_json_word(j, "hidden_act", "silu");
    static const struct act_name acts[] = {{"silu", "swiglu"},
                                           {"swish", "swiglu"},
                                           {"gelu", "geglu"},
                                           {"gelu_pytorch_tanh", "geglu_tanh"},
                                           {0}};
    const struct act_name *name = acts;

    while (name->published && act && strcmp(name->published, act) != 0)
        name++;
    if (act && !name->published)
        import_refuse(j, "hidden_act %.40s: not supported  -> use silu", act);
    config_json_put(j, key, "%s", name->published ? name->ours : "swiglu");
}

void import_put_experts(struct config_json *j, const struct experts *x)
{
    const int count =
        config_json_whole(j, x->count, x->usual_count, x->may_lack ? 0 : 1, MAX_WIDTH);
    const int taken = config_json_whole(j, x->taken, x->usual_taken, 1, MAX_WIDTH);

    if (j->st == OK && count > 0 && taken > count)
        import_refuse(j, "%s %d of %d  -> use at most that many", x->taken, taken, count);
    config_json_put(j, "ffn", "moe");
    config_json_put(j, "experts", "%d", max_int(count, 1)); /* of 0 no layer has any */
    config_json_put(j, "moe_k", "%d", count > 0 ? taken : 1);
    put_act(j, "moe_act");
    config_json_put(j, "moe_norm", "%s", x->norms ? "always" : "never");
    SAY(j, {"aux_coef", "0"}, {"ff_bias", "0"}); /* the first balanced them in training */
    SKIP(j, "router_aux_loss_coef", "output_router_logits", "router_jitter_noise");
}

void import_put_dense_layers(struct config_json *j, const bool *dense, int usual_inner)
{
    const int layers = config_json_whole(j, "num_hidden_layers", REQUIRED, 1, MAX_LAYERS);
    const int inner = config_json_whole(j, "intermediate_size", usual_inner, 1, 4 * MAX_WIDTH);
    char text[CHOICE_TEXT] = "";
    int ranges = 0;

    for (int l = 0; l < layers; l++) {
        const int first = l;
        while (dense[l] && l + 1 < layers && dense[l + 1])
            l++;
        if (!dense[l])
            continue;
        if (++ranges <= MAX_LAYER_RANGES)
            text_item(text, sizeof(text), "%d-%d", first, l);
    }
    if (ranges > MAX_LAYER_RANGES)
        import_refuse(
            j, "layers without experts in %d places: not supported  -> use a model with up to %d",
            ranges, (int)MAX_LAYER_RANGES);
    if (ranges == 0)
        return;
    config_json_put(j, "dense_layers", "%s", text);
    config_json_put(j, "dense_inner", "%d", inner);
    put_act(j, "dense_ffn");
}

void import_put_sparse_layers(struct config_json *j, int usual_inner)
{
    const int layers = config_json_whole(j, "num_hidden_layers", REQUIRED, 1, MAX_LAYERS);
    const int step = config_json_whole(j, "decoder_sparse_step", 1, 1, MAX_LAYERS);
    const bool none = config_json_whole(j, "num_experts", 1, 0, MAX_WIDTH) == 0;
    const json_t *const others = config_json_at(j, "mlp_only_layers");
    bool dense[MAX_LAYERS] = {false};
    const json_t *one;
    size_t i;

    for (int l = 0; l < layers; l++)
        dense[l] = (l + 1) % step != 0 || none;
    if (others && !json_is_array(others))
        config_json_refuse(j, "mlp_only_layers is not a list  -> use a published config");
    json_array_foreach(others, i, one)
    {
        const json_int_t l = json_integer_value(one);
        if (!json_is_integer(one) || l < 0 || l >= layers)
            import_refuse(j, "mlp_only_layers that it does not have  -> count from 0");
        else
            dense[l] = true;
    }
    import_put_dense_layers(j, dense, usual_inner);
}

/* ---- mixtral ------------------------------------------------------------------------------ */

/* clang-format off */
static const struct tensor_row mixtral_tensors[] = {
    LLAMA_REST,
    {.ours = "layers.*.ff.router", .published = "layers.*.mlp.gate", .if_there = true},
    {.ours = "layers.*.ff.router", .published = "layers.*.block_sparse_moe.gate"},
    EXPERTS_OF("layers.*.block_sparse_moe.", "w1", "w3", "w2"),
    {0},
};
static const struct tensor_row qwen_tensors[] = { /* of qwen2_moe, too */
    LLAMA_REST,
    QK_NORMS,
    EXPERTS,
    SHARED_EXPERT("shared_expert"),
    {.ours = "layers.*.ff.shared_gate", .published = "layers.*.mlp.shared_expert_gate"},
    LLAMA_FEED_FORWARD,
    {0},
};
/* clang-format on */

static const struct key_row mixtral_keys[] = {LLAMA_KEYS(1e-5, 0), {0}};

static void mixtral(struct config_json *j)
{
    enum { KV_HEADS = 8, BASE = 1000000 };
    static const struct rotary rotary = {.usual_base = BASE, .whole = true};
    static const struct experts experts = {"num_experts", "num_experts_per_tok", 8, 2,
                                           .norms = true};

    import_put_rotary(j, &rotary, import_put_heads(j, "llama", KV_HEADS, 0));
    SAY(j, {"norm", "pre"}, {"attn_bias", "0"});
    import_put_window(j);
    import_put_experts(j, &experts);
}

/* ---- qwen --------------------------------------------------------------------------------- */

static const struct key_row qwen2_keys[] = {
    LLAMA_KEYS_BUT_INNER(1e-6, 0),
    {"moe_intermediate_size", "d_inner", KEY_WHOLE, 1408, 1, 4 * MAX_WIDTH},
    {"shared_expert_intermediate_size", "moe_shared", KEY_WHOLE, 5632, 1, 4 * MAX_WIDTH},
    {0},
};
static const struct key_row qwen3_keys[] = {
    LLAMA_KEYS_BUT_INNER(1e-6, 0),
    {"moe_intermediate_size", "d_inner", KEY_WHOLE, 768, 1, 4 * MAX_WIDTH},
    {"attention_bias", "attn_bias", KEY_FLAG, 0, 0, 1},
    {0},
};

static void qwen2_moe(struct config_json *j)
{
    enum { KV_HEADS = 16, INNER = 5632 };
    const struct experts experts = {
        "num_experts", "num_experts_per_tok", 60, 4, config_json_flag(j, "norm_topk_prob", false),
        true};

    import_refuse_some_windows(j);
    import_put_sparse_layers(j, INNER);
    import_put_rotary(j, &llama_rotary, import_put_heads(j, "llama", KV_HEADS, 0));
    config_json_put(j, "norm", "pre");
    config_json_put(j, "attn_bias", "%s", config_json_flag(j, "qkv_bias", true) ? "qkv" : "0");
    import_put_experts(j, &experts);
    config_json_put(j, "moe_shared_gate", "1");
}

static void qwen3_moe(struct config_json *j)
{
    enum { KV_HEADS = 4, INNER = 6144 };
    const struct experts experts = {
        "num_experts", "num_experts_per_tok", 128, 8, config_json_flag(j, "norm_topk_prob", false),
        true};

    import_refuse_some_windows(j);
    import_put_sparse_layers(j, INNER);
    import_put_rotary(j, &llama_rotary, import_put_heads(j, "qknorm", KV_HEADS, 0));
    config_json_put(j, "norm", "pre");
    import_put_experts(j, &experts);
    config_json_put(j, "qk_norm", "1");
    config_json_put(j, "head_eps", "%.9g", config_json_real(j, "rms_norm_eps", 1e-6, 0, 1));
}

LLAMA_TYPE(mixtral, .usual_context = 131072, .aliases = experts_aliases, .keys = mixtral_keys,
           .tensors = mixtral_tensors, .more = mixtral);
LLAMA_TYPE(qwen2_moe, .usual_context = 32768, .aliases = experts_aliases, .keys = qwen2_keys,
           .tensors = qwen_tensors, .more = qwen2_moe);
LLAMA_TYPE(qwen3_moe, .usual_context = 32768, .aliases = experts_aliases, .keys = qwen3_keys,
           .tensors = qwen_tensors, .more = qwen3_moe);

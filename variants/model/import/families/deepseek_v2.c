/* SPDX-License-Identifier: MIT
 *
 * deepseek_v2 (DeepSeek-AI 2024, arXiv:2405.04434): latent attention, experts in groups and experts
 * that serve every token, first layers without them. Where the publisher's program and that of
 * transformers compute differently, a model is refused. */
#include "llama.h"

static const struct alias aliases[] = {{"n_routed_experts", "num_experts"}, {0}};

#define ATTENTION(name, in) .ours = "layers.*.attn." name, .published = "layers.*.self_attn." in

/* clang-format off */
static const struct tensor_row tensors[] = {
    {ATTENTION("q_a", "q_a_proj")},
    {ATTENTION("q_norm", "q_a_layernorm")},
    {ATTENTION("q_b", "q_b_proj")},
    {ATTENTION("kv_a", "kv_a_proj_with_mqa")},
    {ATTENTION("kv_norm", "kv_a_layernorm")},
    {ATTENTION("kv_b", "kv_b_proj")},
    EXPERTS,
    SHARED_EXPERT("shared_experts"),
    LLAMA_FEED_FORWARD,
    LLAMA_REST,
    {0},
};
/* clang-format on */

enum { NOPE = 128, ROPE = 64, VALUES = 128, MOE_INNER = 1407, INNER = 11008 };

static const struct key_row keys[] = {
    LLAMA_KEYS_BUT_INNER(1e-6, 0),
    {"moe_intermediate_size", "d_inner", KEY_WHOLE, MOE_INNER, 1, 4 * MAX_WIDTH},
    {"routed_scaling_factor", "moe_scale", KEY_REAL, 1, 0, 1 << 20},
    {"kv_lora_rank", "kv_rank", KEY_WHOLE, 512, 1, MAX_WIDTH},
    {"qk_nope_head_dim", "d_nope", KEY_WHOLE, NOPE, 1, MAX_WIDTH},
    {"qk_rope_head_dim", "d_rope", KEY_WHOLE, ROPE, 2, MAX_WIDTH},
    {"v_head_dim", "d_value", KEY_WHOLE, VALUES, 1, MAX_WIDTH},
    {0},
};

/* ---- attention ---------------------------------------------------------------------------- */

/* What scores are multiplied by besides, where the context has become longer. One weight alone means
 * something else to either program. */
static double longer(struct config_json *j)
{
    const json_t *const old = json_object_get(j->root, "rope_scaling");
    const json_t *const how =
        json_is_object(old) ? old : json_object_get(j->root, "rope_parameters");
    const double over = json_number_value(json_object_get(how, "mscale"));
    const double all = json_number_value(json_object_get(how, "mscale_all_dim"));
    const double factor = json_number_value(json_object_get(how, "factor"));

    if ((over > 0) != (all > 0))
        import_refuse(
            j,
            "mscale %g, mscale_all_dim %g: programs differ in it  -> use a model with both or none",
            over, all);
    return all > 0 && factor > 1 ? 0.1 * all * log(factor) + 1 : 1;
}

static void put_attention(struct config_json *j)
{
    enum { Q_RANK = 1536 };
    const int H = config_json_whole(j, "num_attention_heads", REQUIRED, 1, MAX_WIDTH);
    const int nope = config_json_whole(j, "qk_nope_head_dim", NOPE, 1, MAX_WIDTH);
    const int rope = config_json_whole(j, "qk_rope_head_dim", ROPE, 2, MAX_WIDTH);
    const bool no_rank = json_is_null(json_object_get(j->root, "q_lora_rank"));
    const bool none = no_rank && !config_json_at(j, "q_lora_rank");
    const bool one = json_is_null(json_object_get(j->root, "num_key_value_heads"));

    if (!one && config_json_whole(j, "num_key_value_heads", H, 1, MAX_WIDTH) != H)
        import_refuse(j, "num_key_value_heads other than %d  -> use as many", H);
    if (config_json_whole(j, "head_dim", rope, 1, MAX_WIDTH) != rope ||
        config_json_whole(j, "qk_head_dim", nope + rope, 1, MAX_WIDTH) != nope + rope)
        import_refuse(
            j,
            "head_dim other than qk_rope_head_dim %d, or qk_head_dim other than %d  -> use these",
            rope, nope + rope);
    import_need_flag(j, "attention_bias", false);
    import_put_common(j, "mla");
    import_put_rotary(j, &llama_rotary, rope);
    config_json_put(j, "rope_pairs", "interleaved");
    config_json_put(j, "d_head", "%d", nope + rope);
    config_json_put(j, "kv_heads", "%d", H);
    config_json_put(j, "q_rank", "%d",
                    none ? 0 : config_json_whole(j, "q_lora_rank", Q_RANK, 1, MAX_WIDTH));
    config_json_put(j, "norm_kind", "rms");
    config_json_put(j, "head_eps", "1e-6"); /* of latents, whatever rms_norm_eps is */
    config_json_put(j, "scale", "%.9g", pow(longer(j), 2) / sqrt(nope + rope));
    SAY(j, {"norm", "pre"}, {"attn_bias", "0"});
}

/* ---- experts ------------------------------------------------------------------------------ */

static void put_route(struct config_json *j, int taken)
{
    const char *const how = config_json_word(j, "topk_method", "greedy");
    const bool norms = config_json_flag(j, "norm_topk_prob", false);
    const bool groups = how && strcmp(how, "group_limited_greedy") == 0;
    const bool said = config_json_at(j, "n_group"), within = config_json_at(j, "topk_group");

    if (how && !groups && strcmp(how, "greedy") != 0)
        import_refuse(j, "topk_method %.40s: not supported  -> use greedy or group_limited_greedy",
                      how);
    import_need_word(j, "scoring_func", "softmax");
    if (norms && taken > 1)
        import_refuse(j, "norm_topk_prob: the publisher's program divides gates by their sum, "
                         "transformers does not  -> use a model without");
    if (groups && !(said && within))
        import_refuse(j, "groups of experts, but no n_group, topk_group  -> give both");
    if (!groups)
        return;
    config_json_put(j, "route_groups", "%d",
                    config_json_whole(j, "n_group", REQUIRED, 1, MAX_WIDTH));
    config_json_put(j, "route_within", "%d",
                    config_json_whole(j, "topk_group", REQUIRED, 1, MAX_WIDTH));
}

static void put_layers(struct config_json *j)
{
    static const struct experts experts = {"n_routed_experts", "num_experts_per_tok", 64, REQUIRED,
                                           .norms = false};
    enum { SHARED = 2 };
    const int inner = config_json_whole(j, "moe_intermediate_size", MOE_INNER, 1, 4 * MAX_WIDTH);
    const int shared = config_json_whole(j, "n_shared_experts", SHARED, 1, MAX_WIDTH);
    const int first = config_json_whole(j, "first_k_dense_replace", 0, 0, MAX_LAYERS);
    bool dense[MAX_LAYERS] = {false};

    for (int l = 0; l < first; l++)
        dense[l] = true;
    if (config_json_whole(j, "moe_layer_freq", 1, 1, MAX_LAYERS) != 1)
        import_refuse(j, "moe_layer_freq: transformers does not read it  -> use a model with 1");
    import_need_flag(j, "mlp_bias", false);
    config_json_at(j, "aux_loss_alpha"); /* of training, as seq_aux is */
    import_put_experts(j, &experts);
    import_put_dense_layers(j, dense, INNER);
    put_route(j, config_json_whole(j, "num_experts_per_tok", REQUIRED, 1, MAX_WIDTH));
    if ((int64_t)inner * shared > 4 * MAX_WIDTH)
        import_refuse(j, "n_shared_experts %d of %d  -> use fewer", shared, inner);
    else
        config_json_put(j, "moe_shared", "%d", inner * shared);
}

static void more(struct config_json *j)
{
    put_attention(j);
    put_layers(j);
}

LLAMA_TYPE(deepseek_v2, .usual_context = 2048, .aliases = aliases, ROWS_OF_FILE);

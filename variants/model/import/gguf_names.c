/* SPDX-License-Identifier: MIT
 *
 * Families of GGUF files, which are rows of names (gguf_names.h). */
#include "gguf_names.h"

const struct gguf_names gguf_usual_tensors[] = {
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
    {"blk.*.ffn_gate_inp", "model.layers.*.mlp.gate"},
    {"blk.*.ffn_gate_exps.weight", "model.layers.*.mlp.experts.gate_proj"},
    {"blk.*.ffn_up_exps.weight", "model.layers.*.mlp.experts.up_proj"},
    {"blk.*.ffn_down_exps.weight", "model.layers.*.mlp.experts.down_proj"},
    {"blk.*.ffn_gate_inp_shexp", "model.layers.*.mlp.shared_expert_gate"},
    {"blk.*.ffn_gate_shexp", "model.layers.*.mlp.shared_expert.gate_proj"},
    {"blk.*.ffn_up_shexp", "model.layers.*.mlp.shared_expert.up_proj"},
    {"blk.*.ffn_down_shexp", "model.layers.*.mlp.shared_expert.down_proj"},
    {0},
};
const struct gguf_names gguf_usual_keys[] = {
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"attention.sliding_window", "sliding_window"},
    {"attention.causal", "is_causal"},
    {"rope.freq_base", "rope_theta"},
    {"context_length", "max_position_embeddings"},
    {"expert_count", "num_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"},
    {"expert_weights_norm", "norm_topk_prob"},
    {0},
};

static const struct gguf_names gpt_oss_tensors[] = {
    {"blk.*.post_attention_norm", "model.layers.*.post_attention_layernorm"},
    {"blk.*.attn_sinks.weight", "model.layers.*.self_attn.sinks"},
    {"blk.*.ffn_gate_inp", "model.layers.*.mlp.router"},
    {"blk.*.ffn_gate_exps.bias", "model.layers.*.mlp.experts.gate_proj_bias"},
    {"blk.*.ffn_up_exps.bias", "model.layers.*.mlp.experts.up_proj_bias"},
    {"blk.*.ffn_down_exps.weight", "model.layers.*.mlp.experts.down_rows"},
    {"blk.*.ffn_down_exps.bias", "model.layers.*.mlp.experts.down_proj_bias"},
    {0},
};

/* Norms behind sub-layers, and maybe before. */
static const struct gguf_names behind_tensors[] = {
    {"blk.*.post_attention_norm", "model.layers.*.post_attention_layernorm"},
    {"blk.*.ffn_norm", "model.layers.*.pre_feedforward_layernorm"},
    {"blk.*.post_ffw_norm", "model.layers.*.post_feedforward_layernorm"},
    {0},
};

static const struct gguf_names gemma_keys[] = {
    {"attention.sliding_window_pattern", "sliding_window_pattern"},
    {"rope.freq_base_swa", "rope_local_base_freq"},
    {0},
};

static const struct gguf_names glm4_tensors[] = {
    {"blk.*.post_attention_norm", "model.layers.*.post_self_attn_layernorm"},
    {"blk.*.post_ffw_norm", "model.layers.*.post_mlp_layernorm"},
    {"blk.*.ffn_up", "model.layers.*.mlp.gate_up_proj"},
    {0},
};

static const struct gguf_names starcoder2_tensors[] = {
    {"blk.*.ffn_up", "model.layers.*.mlp.c_fc"},
    {"blk.*.ffn_down", "model.layers.*.mlp.c_proj"},
    {0},
};

static const struct gguf_names starcoder2_keys[] = {
    {"attention.layer_norm_epsilon", "norm_epsilon"}, {0}};

static const struct gguf_names cohere2_keys[] = {{"attention.layer_norm_epsilon", "layer_norm_eps"},
                                                 {0}};

static const struct gguf_names granite_keys[] = {
    {"attention.scale", "attention_multiplier"},
    {"embedding_scale", "embedding_multiplier"},
    {"residual_scale", "residual_multiplier"},
    {"logit_scale", "logits_scaling"},
    {0},
};

static const struct gguf_names lfm2_tensors[] = {
    {"token_embd_norm", "model.embedding_norm"},
    {"output_norm", "model.embedding_norm"},
    {"blk.*.attn_norm", "model.layers.*.operator_norm"},
    {"blk.*.ffn_norm", "model.layers.*.ffn_norm"},
    {"blk.*.shortconv.in_proj", "model.layers.*.conv.in_proj"},
    {"blk.*.shortconv.conv", "model.layers.*.conv.conv"},
    {"blk.*.shortconv.out_proj", "model.layers.*.conv.out_proj"},
    {"blk.*.attn_output", "model.layers.*.self_attn.out_proj"},
    {"blk.*.attn_q_norm", "model.layers.*.self_attn.q_layernorm"},
    {"blk.*.attn_k_norm", "model.layers.*.self_attn.k_layernorm"},
    {"blk.*.ffn_gate", "model.layers.*.feed_forward.w1"},
    {"blk.*.ffn_up", "model.layers.*.feed_forward.w3"},
    {"blk.*.ffn_down", "model.layers.*.feed_forward.w2"},
    {0},
};

static const struct gguf_names lfm2_keys[] = {
    {"attention.layer_norm_rms_epsilon", "norm_eps"},
    {"shortconv.l_cache", "conv_L_cache"},
    {0},
};

static const struct gguf_names phi3_tensors[] = {
    {"blk.*.attn_qkv", "model.layers.*.self_attn.qkv_proj"},
    {"blk.*.ffn_up", "model.layers.*.mlp.gate_up_proj"},
    {0},
};

static const struct gguf_names gpt2_tensors[] = {
    {"token_embd", "wte"},
    {"position_embd", "wpe"},
    {"output_norm", "ln_f"},
    {"blk.*.attn_norm", "h.*.ln_1"},
    {"blk.*.ffn_norm", "h.*.ln_2"},
    {"blk.*.attn_qkv", "h.*.attn.c_attn"},
    {"blk.*.attn_output", "h.*.attn.c_proj"},
    {"blk.*.ffn_up", "h.*.mlp.c_fc"},
    {"blk.*.ffn_down", "h.*.mlp.c_proj"},
    {0},
};

static const struct gguf_names gpt2_keys[] = {
    {"embedding_length", "n_embd"},
    {"block_count", "n_layer"},
    {"feed_forward_length", "n_inner"},
    {"attention.head_count", "n_head"},
    {"attention.layer_norm_epsilon", "layer_norm_epsilon"},
    {"context_length", "n_positions"},
    {0},
};

static const struct gguf_names mamba2_tensors[] = {
    {"token_embd", "backbone.embeddings"},
    {"output_norm", "backbone.norm_f"},
    {"blk.*.attn_norm", "backbone.layers.*.norm"},
    {"blk.*.ssm_in", "backbone.layers.*.mixer.in_proj"},
    {"blk.*.ssm_conv1d", "backbone.layers.*.mixer.conv1d"},
    {"blk.*.ssm_dt.bias", "backbone.layers.*.mixer.dt_bias"},
    {"blk.*.ssm_a", "backbone.layers.*.mixer.A_log"},
    {"blk.*.ssm_d", "backbone.layers.*.mixer.D"},
    {"blk.*.ssm_norm", "backbone.layers.*.mixer.norm"},
    {"blk.*.ssm_out", "backbone.layers.*.mixer.out_proj"},
    {0},
};

static const char *const mamba2_vectors[] = {"blk.*.ssm_a", "blk.*.ssm_d", "blk.*.ssm_norm", NULL};

static const struct gguf_names mamba2_keys[] = {
    {"ssm.time_step_rank", "num_heads"},
    {"ssm.state_size", "state_size"},
    {"ssm.group_count", "n_groups"},
    {"ssm.conv_kernel", "conv_kernel"},
    {"attention.layer_norm_rms_epsilon", "layer_norm_epsilon"},
    {0},
};

static const struct gguf_family families[] = {
    {"llama", .form = {.adjacent = true}, .bias_key = "attention_bias", .ff_bias_key = "mlp_bias",
     .one_width = true},
    {.name = "qwen2"},
    {"qwen3", .bias_key = "attention_bias"},
    {"qwen2moe", .type = "qwen2_moe", .bias_key = "qkv_bias", .row = "blk.*.ffn_gate_inp_shexp"},
    {"qwen3moe", .type = "qwen3_moe", .bias_key = "attention_bias", .norms_gates = true},
    {"gpt-oss", gpt_oss_tensors, .type = "gpt_oss", .one_width = true, .fractions = true},
    {"olmo2", behind_tensors, .bias_key = "attention_bias"},
    {"gemma2", behind_tensors, gemma_keys, .divided_at = 46},
    {"gemma3", behind_tensors, gemma_keys, .type = "gemma3_text", .divided_at = 62,
     .sees_all = true},
    {"smollm3", .form = {.adjacent = true}, .bias_key = "attention_bias",
     .ff_bias_key = "mlp_bias"},
    {"granite", NULL, granite_keys, .form = {.adjacent = true}, .bias_key = "attention_bias",
     .ff_bias_key = "mlp_bias"},
    {"cohere2", NULL, cohere2_keys, .bias_key = "attention_bias"},
    {"glm4", glm4_tensors, .bias_key = "attention_bias"},
    {"starcoder2", starcoder2_tensors, starcoder2_keys, .bias_key = "use_bias"},
    {"lfm2", lfm2_tensors, lfm2_keys, .taps = "blk.*.shortconv.conv"},
    {"phi3", .tensors = phi3_tensors},
    {"gpt2", gpt2_tensors, gpt2_keys, .form = {.upright = true}},
    {"mamba2", mamba2_tensors, mamba2_keys, .vectors = mamba2_vectors, .taps = "blk.*.ssm_conv1d"},
};

const struct gguf_family *gguf_family_find(const char *name)
{
    for (size_t i = 0; name && i < ARRAY_LEN(families); i++)
        if (strcmp(families[i].name, name) == 0)
            return &families[i];
    return NULL;
}

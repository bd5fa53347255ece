/* SPDX-License-Identifier: MIT
 *
 * config.json of single families: what is refused, with which words, what may be missing, and what changes
 * nothing. What they compute: tests/golden-import. */
#include "tests/support/published_folder.h"

TestSuite(published_families, .init = folder_make, .fini = folder_remove, .timeout = 240);

#define LLAMA "llama_gqa_bf16"
#define RWKV7 "rwkv7"

Test(published_families, deepseek_v2)
{
    static const struct patch patches[] = {
        /* what files say besides, as they were published */
        {"deepseek_v2_lite",
         "{'n_group':1,'topk_group':1,'aux_loss_alpha':0.001,'seq_aux':true,'ep_size':1,'scoring_"
         "func':'softmax','moe_layer_freq':1,'num_key_value_heads':null}",
         NULL},
        {"deepseek_v2", "{'attention_bias':true}", "attention_bias"},
        {"deepseek_v2", "{'mlp_bias':true}", "mlp_bias"},
        {"deepseek_v2", "{'topk_method':'noaux_tc'}", "topk_method noaux_tc"},
        {"deepseek_v2", "{'scoring_func':'sigmoid'}", "scoring_func sigmoid"},
        {"deepseek_v2", "{'norm_topk_prob':true}", "norm_topk_prob"},
        {"deepseek_v2_lite", "{'norm_topk_prob':true,'num_experts_per_tok':1}", NULL},
        {"deepseek_v2", "{'moe_layer_freq':2}", "moe_layer_freq"},
        {"deepseek_v2", "{'n_group':null}", "no n_group"},
        {"deepseek_v2", "{'topk_group':5}", "within 5 of route_groups 4"},
        {"deepseek_v2", "{'topk_group':1}", "moe_k 3 of the 2 experts"},
        {"deepseek_v2", "{'n_routed_experts':7}", "route_groups 4 of 7"},
        {"deepseek_v2", "{'num_experts_per_tok':9}", "num_experts_per_tok 9 of 8"},
        {"deepseek_v2", "{'num_key_value_heads':2}", "num_key_value_heads"},
        {"deepseek_v2", "{'head_dim':6}", "head_dim"},
        {"deepseek_v2", "{'qk_head_dim':11}", "qk_head_dim"},
        {"deepseek_v2", "{'n_shared_experts':3}", "shared_experts.gate_proj.weight\" is"},
        {"deepseek_v2", "{'n_shared_experts':0}", "n_shared_experts"},
        {"deepseek_v2", "{'moe_intermediate_size':8}", "experts.0."},
        {"deepseek_v2", "{'first_k_dense_replace':0}", "layers.0.mlp.gate.weight\" missing"},
        {"deepseek_v2", "{'first_k_dense_replace':2}", "layers.1.mlp.gate_proj.weight\" missing"},
        {"deepseek_v2", "{'q_lora_rank':null}", "q_proj.weight\" missing"},
        {"deepseek_v2_lite", "{'q_lora_rank':7}", "q_a_proj.weight\" missing"},
        {"deepseek_v2", "{'q_lora_rank':13}", "q_a_proj.weight\" is"},
        {"deepseek_v2",
         "{'rope_parameters':{'rope_type':'yarn','factor':4,'original_max_position_embeddings':16,'"
         "rope_theta':10000,'mscale':0.7}}",
         "mscale 0.7, mscale_all_dim 0"},
        {"deepseek_v2", "{'rope_parameters':{'rope_type':'default','rope_theta':10000}}", NULL},
        {"deepseek_v2", "{'qk_rope_head_dim':3,'head_dim':3,'qk_head_dim':9}", "odd"},
    };

    TRY_PATCHES(patches);
}

Test(published_families, flash_linear_attention)
{
    static const struct patch patches[] = {
        {"gla_wide", "{'feature_map':'relu'}", "feature_map"},
        {"gla_wide", "{'clamp_min':-3}", "clamp_min"},
        {"gla_wide", "{'num_kv_heads':1}", "num_kv_heads 1"},
        {"gla_wide", "{'use_short_conv':true}", "use_short_conv"},
        {"gla_wide", "{'elementwise_affine':false}", "elementwise_affine"},
        {"gla_wide", "{'hidden_act':'gelu'}", "hidden_act gelu"},
        {"gla_wide", "{'num_heads':3}", "expand_k"},
        {"gla_wide", "{'gate_low_rank_dim':8}", "gate_low_rank_dim"},
        {"gla_wide", "{'use_gk':false,'attn_mode':'fused_chunk'}", NULL},
        {"gated_deltanet_grouped", "{'attn':{'layers':[1],'num_heads':2}}", "attn"},
        {"gated_deltanet_grouped", "{'num_v_heads':3}", "num_v_heads 3"},
        {"gated_deltanet_grouped", "{'expand_v':1.5}", "expand_v 1.5"},
        {"gated_deltanet_grouped", "{'conv_size':3}", "q_conv1d.weight"},
        {"gated_deltanet_grouped", "{'use_gate':false}", "g_proj.weight"},
        {"gated_deltanet_grouped", "{'num_v_heads':null}", "v_proj.weight"},
    };

    TRY_PATCHES(patches);
}

Test(published_families, rwkv7)
{
    static const struct patch patches[] = {
        {RWKV7, "{'decay_low_rank_dim':6}", "w_lora.lora.0.weight\" has 5 rows"},
        {RWKV7, "{'v_low_rank_dim':4}", "v_lora.lora.0.weight\" has 3 rows"},
        {RWKV7, "{'decay_low_rank_dim':null,'v_low_rank_dim':null}", NULL},
        {RWKV7, "{'head_dim':5}", "head_dim 5"},
        {RWKV7, "{'num_heads':4}", "num_heads 4 of head_dim 8"},
        {RWKV7, "{'head_dim':null}", NULL},
        {RWKV7, "{'num_heads':null}", NULL},
        {RWKV7, "{'value_dim':[24,48]}", "value_dim"},
        {RWKV7, "{'value_dim':24}", NULL},
        {RWKV7, "{'value_dim':null}", NULL},
        {RWKV7, "{'hidden_act':'relu'}", "hidden_act relu"},
        {RWKV7, "{'norm_bias':false}", "norm_bias"},
        {RWKV7, "{'norm_first':false}", "pre_norm"},
        {RWKV7, "{'tie_word_embeddings':true}", "norm_first, tie_word_embeddings"},
        {RWKV7, "{'attn':{'layers':[0],'num_heads':2}}", "layers of attention"},
        {RWKV7, "{'intermediate_size':null}", "ffn.key.weight"},
        {RWKV7, "{'model_type':'rwkv7_fla'}", NULL},
    };

    TRY_PATCHES(patches);
}

/* Divisors of each pair: contradictions, what is no list, older names, and what is as if it were said twice. */
Test(published_families, longrope)
{
#define LISTS "'short_factor':[1,1.1,1.05,1.3],'long_factor':[1,1.9,4.75,8.4]"
#define LONGROPE "'rope_type':'longrope'," LISTS
    static const struct patch patches[] = {
        {"phi3_long", "{'rope_parameters':{" LONGROPE ",'factor':4}}",
         "factor 4 of rope_parameters, max_position_embeddings 128 of"},
        {"phi3_long", "{'rope_parameters':{" LONGROPE ",'factor':8}}", NULL},
        {"phi3_long", "{'rope_parameters':{" LONGROPE ",'factor':4,'attention_factor':1.5}}", NULL},
        {"phi3_long", "{'rope_parameters':{" LONGROPE ",'original_max_position_embeddings':32}}",
         "original_max_position_embeddings 16, 32 of rope_parameters"},
        {"phi3_long", "{'rope_parameters':{" LONGROPE ",'attention_factor':-1}}",
         "attention_factor"},
        {"phi3_long", "{'rope_parameters':{" LONGROPE ",'beta_fast':32}}", "beta_fast"},
        {"phi3_long", "{'rope_parameters':{" LONGROPE ",'short_mscale':1.2}}", "short_mscale"},
        {"phi3_long", "{'rope_scaling':{'type':'su'," LISTS "},'rope_parameters':null}", NULL},
        {"phi3_long", "{'rope_scaling':{'type':'yarn'," LISTS "},'rope_parameters':null}", NULL},
        {"phi3_long", "{'rope_scaling':{'type':'yarn','factor':8},'rope_parameters':null}",
         "short_factor has 0 numbers, 4 pairs"},
        {"phi3_long",
         "{'rope_parameters':{'rope_type':'longrope','short_factor':[1,1,1,1],'long_factor':[1,2,3]"
         "}}",
         "long_factor has 3 numbers, 4 pairs"},
        {"phi3_long",
         "{'rope_parameters':{'rope_type':'longrope','short_factor':[1,1,0,1],'long_factor':[1,2,3,"
         "4]}}",
         "number 2 of short_factor"},
        {"phi3_long",
         "{'rope_parameters':{'rope_type':'longrope','short_factor':[1,1,1,1],'long_factor':[1,2,3,"
         "'4']}}",
         "number 3 of long_factor"},
        {LLAMA, "{'rope_scaling':{'type':'su'," LISTS "}}", "su: not supported"},
        {LLAMA, "{'rope_scaling':{" LONGROPE ",'factor':4}}", NULL},
    };
#undef LONGROPE
#undef LISTS

    TRY_PATCHES(patches);
}

/* Of programs other than transformers, or of what scores no text: keys that change nothing while they have
 * the value that all have. */
Test(published_families, idle_keys)
{
    static const struct patch patches[] = {
        {"gemma2_capped", "{'hidden_act':'gelu_pytorch_tanh'}", NULL},
        {"gemma2_capped", "{'sliding_window_size':5}", NULL},
        {"gemma2_capped", "{'sliding_window_size':6}", "sliding_window_size"},
        {"phi3_window", "{'full_attn_mod':1,'interpolate_factor':1}", NULL},
        {"phi3_window", "{'full_attn_mod':2}", "full_attn_mod"},
        {"phi3_window", "{'interpolate_factor':2}", "interpolate_factor"},
        {"qwen3_5_text", "{'attn_output_gate':true,'mamba_ssm_dtype':'float32'}", NULL},
        {"qwen3_5_text", "{'mtp_num_hidden_layers':1}", NULL},
        {"qwen3_5_text", "{'attn_output_gate':false}", "attn_output_gate"},
        {"gla_wide", "{'share_conv_kernel':true}", NULL},
        {"mamba2", "{'norm_before_gate':true,'time_step_scale':1.0}", NULL},
    };

    TRY_PATCHES(patches);
}

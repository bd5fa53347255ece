/* SPDX-License-Identifier: MIT
 *
 * config.json of deepseek_v2: what is refused, with which words. */
#include "tests/support/published_folder.h"

TestSuite(published_deepseek, .init = folder_make, .fini = folder_remove, .timeout = 240);

Test(published_deepseek, configs)
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

/* SPDX-License-Identifier: MIT
 *
 * config.json of models with experts: what is refused, with which words. */
#include "tests/support/published_folder.h"

TestSuite(published_experts, .init = folder_make, .fini = folder_remove, .timeout = 240);

Test(published_experts, configs)
{
    static const struct patch patches[] = {
        {"qwen3_next", "{\"mlp_only_layers\":[0]}",
         "\"model.layers.0.mlp.gate_proj.weight\" missing"},
        {"qwen3_next", "{\"mlp_only_layers\":[9]}", "mlp_only_layers that it does not have"},
        {"qwen3_next", "{\"mlp_only_layers\":0}", "mlp_only_layers is not a list"},
        {"qwen3_next", "{\"decoder_sparse_step\":2}",
         "\"model.layers.0.mlp.gate_proj.weight\" missing"},
        {"qwen3_next", "{\"decoder_sparse_step\":0}", "decoder_sparse_step"},
        {"qwen3_moe_dense", "{\"intermediate_size\":27}", "mlp.gate_proj.weight\" is"},
        {"qwen3_moe_dense", "{\"mlp_only_layers\":[1,0,3,0],\"decoder_sparse_step\":1}", NULL},
        {"qwen3_moe_dense", "{\"mlp_only_layers\":[0,1]}", "layers.3.mlp"},
        {"qwen3_next", "{\"num_experts\":7}", "tensor \"model.layers.0.mlp.gate.weight\" is"},
        {"qwen3_next", "{\"moe_intermediate_size\":11}", "experts.0."},
        {"qwen3_moe_normed", "{\"num_experts_per_tok\":8}", "num_experts_per_tok 8 of 7"},
        {"qwen3_moe_normed", "{\"num_experts\":6}", "num_local_experts"},
        {"qwen3_moe_normed", "{\"num_local_experts\":7,\"num_experts\":7}", NULL},
        {"qwen2_moe", "{\"use_sliding_window\":true}", "use_sliding_window"},
        {"mixtral_window", "{\"hidden_act\":\"relu\"}", "hidden_act relu"},
        {"mixtral_window", "{\"sliding_window\":null}", NULL},
        {"mixtral_stacked", "{\"intermediate_size\":27}",
         "experts.gate_up_proj\" is F32 [5,56,24], config.json says [5,54,24]"},
        {"mixtral_stacked", "{\"num_local_experts\":6}", "mlp.gate.weight\" is"},
        {"gpt_oss", "{\"experts_per_token\":2}", "experts_per_token"},
        {"gpt_oss", "{\"experts_per_token\":3,\"initial_context_length\":16}", NULL},
        {"gpt_oss", "{\"layer_types\":null}", NULL},
        {"gpt_oss", "{\"swiglu_limit\":0}", "swiglu_limit"},
        {"gpt_oss", "{\"quantization_config\":{\"quant_method\":\"mxfp4\"}}", "mxfp4"},
    };

    for (size_t i = 0; i < ARRAY_LEN(patches); i++)
        try_patch(&patches[i]);
}

/* SPDX-License-Identifier: MIT
 *
 * Keys of published files that change nothing while they have the value that all have: of programs
 * other than transformers, or of what scores no text. */
#include "tests/support/published_folder.h"

TestSuite(published_idle, .init = folder_make, .fini = folder_remove, .timeout = 120);

Test(published_idle, keys)
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

/* SPDX-License-Identifier: MIT
 *
 * config.json of models of flash-linear-attention: what is refused, with which words. */
#include "tests/support/published_folder.h"

TestSuite(published_fla, .init = folder_make, .fini = folder_remove, .timeout = 240);

Test(published_fla, configs)
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

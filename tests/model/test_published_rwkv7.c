/* SPDX-License-Identifier: MIT
 *
 * rwkv7 of published configs: what is refused, and what may be missing. What it computes:
 * tests/golden-import/rwkv7. */
#include <criterion/criterion.h>

#include "tests/support/published_folder.h"

TestSuite(published_rwkv7, .init = folder_make, .fini = folder_remove, .timeout = 120);

#define RWKV7 "rwkv7"

Test(published_rwkv7, keys)
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

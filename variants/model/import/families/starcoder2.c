/* SPDX-License-Identifier: MIT
 *
 * starcoder2 (Lozhkov et al. 2024, arXiv:2402.19173): llama with biases, layer norms, and a
 * feed-forward network without a gate. */
#include "llama.h"

static const struct tensor_row tensors[] = {
    {.ours = "layers.*.ff.1", .published = "layers.*.mlp.c_fc"},
    {.ours = "layers.*.ff.2", .published = "layers.*.mlp.c_proj"},
    LLAMA_REST,
    {0},
};

static const struct key_row keys[] = {
    LLAMA_SIZES(1),
    {"intermediate_size", "d_inner", KEY_WHOLE, REQUIRED, 1, 4 * MAX_WIDTH},
    {"norm_epsilon", "ln_eps", KEY_REAL, 1e-5, 0, 1},
    {"use_bias", "attn_bias", KEY_FLAG, 1, 0, 1},
    {"use_bias", "ff_bias", KEY_FLAG, 1, 0, 1},
    {0},
};
USUAL_SIZES(3072, 12288, 30, 24, 49152);

static void more(struct config_json *j)
{
    enum { KV_HEADS = 2 };

    import_put_rotary(j, &llama_rotary, import_put_heads(j, "llama", KV_HEADS, 0));
    SAY(j, {"norm", "pre"}, {"norm_kind", "layer"});
    import_put_ffn(j, "hidden_act", "gelu_pytorch_tanh", plain_acts);
    import_put_window(j);
    import_need_word(j, "norm_type", "layer_norm");
    import_need_word(j, "mlp_type", "default");
    SKIP(j, "layer_norm_eps"); /* its program reads norm_epsilon */
}

LLAMA_TYPE(starcoder2, .usual_context = 4096, .usual = usual_sizes, ROWS_OF_FILE);

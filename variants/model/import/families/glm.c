/* SPDX-License-Identifier: MIT
 *
 * glm and glm4 (Team GLM 2024, arXiv:2406.12793): llama with both operands of the gate in one map,
 * adjacent pairs of half of each head rotated; glm4 norms the output of each sub-layer, too. */
#include "llama.h"

/* clang-format off */
static const struct tensor_row glm_tensors[] = {GATE_UP, LLAMA_REST, {0}};
static const struct tensor_row glm4_tensors[] = {
    GATE_UP,
    LLAMA_REST,
    {.ours = "layers.*.ln1_out", .published = "layers.*.post_self_attn_layernorm"},
    {.ours = "layers.*.ln2_out", .published = "layers.*.post_mlp_layernorm"},
    {0},
};
/* clang-format on */

static const struct key_row keys[] = {LLAMA_KEYS(1.5625e-7, 0), {0}};
USUAL_SIZES(4096, 13696, 40, 32, 151552);

static const struct rotary rotary = {.usual_share = 0.5};

static void put_glm(struct config_json *j, const char *norm)
{
    enum { KV_HEADS = 2, HEAD = 128 };

    import_put_rotary(j, &rotary, import_put_heads(j, "llama", KV_HEADS, HEAD));
    config_json_put(j, "attn_bias", "%s",
                    config_json_flag(j, "attention_bias", true) ? "qkv" : "0");
    config_json_put(j, "norm", "%s", norm);
    SAY(j, {"ff_bias", "0"}, {"rope_pairs", "interleaved"});
    import_put_ffn(j, "hidden_act", "silu", llama_acts);
}

static void glm(struct config_json *j) { put_glm(j, "pre"); }
static void glm4(struct config_json *j) { put_glm(j, "peri"); }

LLAMA_TYPE(glm, .usual_context = 131072, .usual = usual_sizes, .keys = keys, .tensors = glm_tensors,
           .more = glm);
LLAMA_TYPE(glm4, .usual_context = 131072, .usual = usual_sizes, .keys = keys,
           .tensors = glm4_tensors, .more = glm4);

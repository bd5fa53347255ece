/* SPDX-License-Identifier: MIT
 *
 * Hybrids: layers of a recurrent mixer with a layer of attention after every three. Dao and Gu 2024
 * (arXiv:2405.21060, section 9.2.3), Yang et al. 2024 (arXiv:2412.06464, section 3.4), and Kimi
 * Team 2025 (arXiv:2510.26692) find that a few layers of attention restore the recall that states
 * of fixed size lack. --stack gives another order. */
#include "variants/parts/parts.h"

extern const struct variant variant_gla, variant_mamba2, variant_gdn, variant_kda;

#define HYBRID(base, word, gate, doc)                                                              \
    const struct variant variant_##base##_hybrid = {                                               \
        .name = word,                                                                              \
        .paper = doc,                                                                              \
        .about = "as " #base "; every fourth layer attends",                                       \
        .control = #base,                                                                          \
        .pos = &pos_rope,                                                                          \
        .mem = &mem_hybrid,                                                                        \
        .ffn = &ffn_swiglu,                                                                        \
        .mixer = &mixer_##base,                                                                    \
        .stack = {4, {false, false, false, true}},                                                 \
        .recurrent = &variant_##base,                                                              \
        .out_gate = gate,                                                                          \
        .wiring = WIRING_PRE,                                                                      \
        .norm_kind = NORM_RMS,                                                                     \
        .bare_ffn = true,                                                                          \
    };

HYBRID(gla, "gla-hybrid", OUT_GATE_SWISH, "Yang et al. 2024, arXiv:2312.06635")
HYBRID(mamba2, "mamba2-hybrid", OUT_GATE_NONE, "Dao and Gu 2024, arXiv:2405.21060")
HYBRID(gdn, "gdn-hybrid", OUT_GATE_SWISH, "Yang et al. 2024, arXiv:2412.06464")
HYBRID(kda, "kda-hybrid", OUT_GATE_SIGMOID, "Kimi Team 2025, arXiv:2510.26692")

/* Qwen3-Next (Qwen Team 2025): the attention of a gdn-hybrid has a gate on its output, as in
 * gated.c, and normed queries and keys. */
const struct variant variant_qwen3_next = {
    .name = "qwen3-next",
    .paper = "Qwen Team 2025; Yang et al. 2025, arXiv:2505.09388",
    .about = "as gdn-hybrid; attention has a gate and normed queries and keys",
    .control = "gdn-hybrid",
    .pos = &pos_rope,
    .mem = &mem_hybrid,
    LLAMA_LAYERS,
    .mixer = &mixer_gdn,
    .stack = {4, {false, false, false, true}},
    .recurrent = &variant_gdn,
    .out_gate = OUT_GATE_SWISH,
    .attn_gate = OUT_GATE_ELEMENTWISE,
    .around = {&head_qk_norm},
};

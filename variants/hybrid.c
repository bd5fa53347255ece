/* SPDX-License-Identifier: MIT
 *
 * Hybrids: layers of a recurrent mixer with a layer of attention after every three. Dao and Gu 2024
 * (arXiv:2405.21060, section 9.2.3), Yang et al. 2024 (arXiv:2412.06464, section 3.4), and Kimi
 * Team 2025 (arXiv:2510.26692) find that a few layers of attention restore the recall that states
 * of fixed size lack. --stack gives another order. */
#include "variant.h"
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

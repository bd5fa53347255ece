/* SPDX-License-Identifier: MIT
 *
 * YaRN: Peng et al. 2023, "YaRN: Efficient Context Window Extension of Large Language Models".
 *
 * Rotary positions for s times the context they were trained on: slow frequencies are divided by s,
 * fast ones stay, scores grow a little (pos_rope.c; rope_scaling linear, ntk or yarn). */
#include "variant.h"
#include "variants/parts/parts.h"

const struct variant variant_yarn = {
    .name = "yarn",
    .paper = "Peng et al. 2023, arXiv:2309.00071",
    .about = "rotary positions stretched to 4 times the context",
    .control = "yarn --rope-scaling none",
    .pos = &pos_rope,
    .mem = &mem_segment,
    .ffn = &ffn_swiglu,
    .wiring = WIRING_PRE,
    .norm_kind = NORM_RMS,
    .bare_ffn = true,
    .rope_scaling = ROPE_YARN,
};

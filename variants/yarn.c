/* SPDX-License-Identifier: MIT
 *
 * YaRN: Peng et al. 2023, "YaRN: Efficient Context Window Extension of Large Language Models".
 *
 * Rotary positions for s times the context they were trained on: slow frequencies are divided by s,
 * fast ones stay, scores grow a little (pos_rope.c; rope_scaling linear, ntk or yarn). */
#include "variants/parts/parts.h"

const struct variant variant_yarn = {
    .name = "yarn",
    .paper = "Peng et al. 2023, arXiv:2309.00071",
    .about = "rotary positions stretched to 4 times the context",
    .control = "yarn --rope-scaling none",
    .pos = &pos_rope,
    LLAMA_LAYERS,
    .rope_scaling = ROPE_YARN,
};

/* SPDX-License-Identifier: MIT
 *
 * Value residual: Zhou et al. 2024, "Value Residual Learning".
 *
 *   v_l <- m_0 v_l + m_1 v_0  in layers l > 0
 *
 * Values of the first layer reach all others; m starts at 1/2, 1/2. */
#include "variants/parts/parts.h"

const struct variant variant_value_residual = {
    .name = "value-residual",
    .alias = "value_residual",
    .paper = "Zhou et al. 2024, arXiv:2410.17897",
    .about = "values mixed with those of the first layer",
    .control = "yarn --rope-scaling none",
    .pos = &pos_rope,
    LLAMA_LAYERS,
    .around = {&head_values},
};

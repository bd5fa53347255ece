/* SPDX-License-Identifier: MIT
 *
 * Differential attention: Ye et al. 2024, "Differential Transformer".
 *
 *   o = (1 - l_0) rms((P_1 - l P_2) v)
 *   y = W_o concat(o)
 *
 * A head is the difference of two softmaxes over values twice as wide, so that what both attend to
 * cancels; l is trained (head_diff.c). With H heads, those of queries and keys are
 * D / 2H wide: weights and cache are those of 2H plain heads of that width. */
#include "variants/parts/parts.h"

static void diff_sizes(int D, int H, int *dh, int *F)
{
    *dh = max_int(2, D / (2 * H));
    *F = 4 * D;
}

const struct variant variant_diff = {
    .name = "diff",
    .paper = "Ye et al. 2024, arXiv:2410.05258",
    .about = "each head the difference of two softmaxes over values twice as wide",
    .control = "yarn --rope-scaling none",
    .pos = &pos_rope,
    LLAMA_LAYERS,
    .sizes = diff_sizes,
    .around = {&head_diff},
};

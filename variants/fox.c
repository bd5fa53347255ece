/* SPDX-License-Identifier: MIT
 *
 * Forgetting attention: Lin et al. 2025, "Forgetting Transformer: Softmax Attention with a Forget
 * Gate".
 *
 *   s_ij = q_i . k_j / sqrt(dh) + sum over t in (j, i] of log f_t
 *   f_t  = sigma(W_f x_t + b_f)
 *
 * One gate per head and token, and no positions. */
#include "variants/parts/parts.h"

const struct variant variant_fox = {
    .name = "fox",
    .paper = "Lin et al. 2025, arXiv:2503.02130",
    .about = "scores fade by a gate of the tokens in between; no positions",
    .control = "nope",
    .pos = &pos_none,
    LLAMA_LAYERS,
    .around = {&term_forget},
};

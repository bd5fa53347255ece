/* SPDX-License-Identifier: MIT
 *
 * FLOATER: Liu et al. 2020, "Learning to Encode Position for Transformer with Continuous Dynamical
 * Model".
 *
 *   h_t   = E[token_t] + p_t
 *   dp/dt = W_2 tanh(W_1 p + w t + b_1) + b_2
 *
 * Positions are the path of a small network, followed by Runge and Kutta's rule, one step for each
 * token. They are added once, to the embedding; the paper also has them at every layer. Equations:
 * variants/parts/pos/pos_floater.c. */
#include "variants/parts/parts.h"

const struct variant variant_floater = {
    .name = "floater",
    .paper = "Liu et al. 2020, arXiv:2003.09229",
    .about = "as vanilla; positions follow a trained differential equation",
    .control = "vanilla",
    .pos = &pos_floater,
    .mem = &mem_prefix,
};

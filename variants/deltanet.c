/* SPDX-License-Identifier: MIT
 *
 * DeltaNet: Yang et al. 2024, "Parallelizing Linear Transformers with the Delta Rule over Sequence
 * Length".
 *
 *   S_t  = S_{t-1} + beta_t k_t (v_t - S_{t-1}^T k_t)^T
 *   o_t  = S_t^T q_t / sqrt(dk)
 *   beta = sigma(W_b x)       q, k, v pass a short convolution; q and k have unit length
 *
 * Before a key is written, what the state returns for it is erased, by the share beta. */
#include "variants/model/sublayer/sublayer.h"

static void build(struct steps *t)
{
    const struct recurrence r = mix_delta(t);

    mix_output(t, step_recur(t, r));
}

static const struct part_numbers numbers = MIX_NUMBERS(.conv_width = 4, .writes = true);
const struct mixer mixer_deltanet = {.name = "deltanet",
                                     .numbers = &numbers,
                                     .kind = &sublayer_steps,
                                     .gated = true,
                                     .build = build};

const struct variant variant_deltanet = {
    .name = "deltanet",
    .paper = "Yang et al. 2024, arXiv:2406.06484",
    .about = "a state that erases what it returns for a key before it writes",
    .control = "linear --norm pre --norm-kind rms --ffn swiglu",
    MIX_LAYERS,
    .mixer = &mixer_deltanet,
};

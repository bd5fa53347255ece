/* SPDX-License-Identifier: MIT
 *
 * Lightning attention: MiniMax 2025, "MiniMax-01: Scaling Foundation Models with Lightning
 * Attention".
 *
 *   S_t = exp(-r) S_{t-1} + k_t v_t^T
 *   o_t = S_t^T q_t
 *   r   = alibi's slope of the head times (1 - l / (N - 1) + 1e-5) in layer l of N
 *   q, k, v = silu(W x)
 *   y   = W_o (rms(o) (.) sigma(W_g x))                      the norm is over all heads
 *
 * A decay that never changes, as in a retentive network, but without rotations and slower from layer
 * to layer: the last one's states sum nearly everything. */
#include "variants/model/sublayer/sublayer.h"

static void decays(const struct step_call *c)
{
    const double slow = 1 - (double)mix_depth(c->steps) + 1e-5;

    for (int i = 0; i < c->B * c->L; i++)
        for (int h = 0; h < c->out->n; h++)
            matrix_row(&c->out[0], i)[h] = (float)(-alibi_slope(h, c->out->n) * slow);
}

static void build(struct steps *t)
{
    static const struct step_kind kind = {.name = "decays", .forward = decays};
    struct recurrence r = mix_recurrence(t, mix_qkv(t, true));

    r.g = step_writes(t, steps_add(t, &kind), t->c->H);
    mix_output(t, step_recur(t, r));
}

static const struct part_numbers numbers = MIX_NUMBERS(.norm_whole = true);
const struct mixer mixer_lightning = {.name = "lightning",
                                      .numbers = &numbers,
                                      .kind = &sublayer_steps,
                                      .gated = true,
                                      .build = build};

const struct variant variant_lightning = {
    .name = "lightning",
    .paper = "MiniMax 2025, arXiv:2501.08313",
    .about = "linear attention whose decays are constants of head and layer",
    .control = "retnet --out-gate sigmoid",
    MIX_LAYERS,
    .mixer = &mixer_lightning,
    .out_gate = OUT_GATE_SIGMOID,
    MIX_SIZES,
    .unscaled = true,
};

/* SPDX-License-Identifier: MIT
 *
 * Gated DeltaNet: Yang et al. 2024, "Gated Delta Networks: Improving Mamba2 with Delta Rule".
 *
 *   S'  = exp(g_t) S_{t-1}
 *   g   = -e^A softplus(W_a x + b_dt), a number per head
 *   S_t = S' + beta_t k_t (v_t - S'^T k_t)^T
 *   o_t = S_t^T q_t / sqrt(dk)
 *   y   = W_o (rms(o) (.) swish(W_g x))
 *
 * The delta rule on a state that decays as that of Mamba-2 does. */
#include "variants/model/sublayer/sublayer.h"

static void build(struct steps *t)
{
    struct recurrence r = mix_delta(t);

    const int dt = step_linear(t, STEPS_INPUT, t->c->H, "dt");
    const int step = step_curve(t, dt, CURVE_SOFTPLUS, 1, "dt_bias", INIT_STEP, 0);
    r.g = step_rate(t, step, 1, false, "A_log");
    mix_output(t, step_recur(t, r));
}

static const struct part_numbers numbers = MIX_NUMBERS(.conv_width = 4, .writes = true);
const struct mixer mixer_gdn = {
    .name = "gdn", .numbers = &numbers, .kind = &sublayer_steps, .gated = true, .build = build};

const struct variant variant_gdn = {
    .name = "gdn",
    .paper = "Yang et al. 2024, arXiv:2412.06464",
    .about = "the delta rule on a state that decays",
    .control = "deltanet --out-gate swish",
    MIX_LAYERS,
    .mixer = &mixer_gdn,
    .out_gate = OUT_GATE_SWISH,
    .alias = "gated-deltanet",
    MIX_SIZES,
};

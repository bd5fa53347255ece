/* SPDX-License-Identifier: MIT
 *
 * Kimi delta attention: Kimi Team 2025, "Kimi Linear: An Expressive, Efficient Attention
 * Architecture".
 *
 *   S'  = diag(exp(g_t)) S_{t-1}
 *   g   = -e^A softplus(W_2 W_1 x + b_dt), a number per key channel
 *   S_t = S' + beta_t k_t (v_t - S'^T k_t)^T
 *   o_t = S_t^T q_t / sqrt(dk)
 *   y   = W_o (rms(o) (.) sigma(W_g x))
 *
 * Gated DeltaNet with a decay for each channel of the keys. */
#include "variants/model/sublayer/sublayer.h"

static void build(struct steps *t)
{
    struct recurrence r = mix_delta(t);

    const int low = step_linear(t, STEPS_INPUT, mix_of(t)->lora, "dt_a");
    const int dt = step_linear(t, low, mix_keys(t), "dt_b");
    const int step = step_curve(t, dt, CURVE_SOFTPLUS, 1, "dt_bias", INIT_STEP, 0);
    r.g = step_rate(t, step, t->c->dh, false, "A_log");
    mix_output(t, step_recur(t, r));
}

static const struct part_numbers numbers = MIX_NUMBERS(.conv_width = 4, .lora = 16, .writes = true);
const struct mixer mixer_kda = {
    .name = "kda", .numbers = &numbers, .kind = &sublayer_steps, .gated = true, .build = build};

const struct variant variant_kda = {
    .name = "kda",
    .paper = "Kimi Team 2025, arXiv:2510.26692",
    .about = "the delta rule on a state whose channels decay by themselves",
    .control = "gdn --out-gate sigmoid",
    MIX_LAYERS,
    .mixer = &mixer_kda,
    .out_gate = OUT_GATE_SIGMOID,
    MIX_SIZES,
};

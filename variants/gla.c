/* SPDX-License-Identifier: MIT
 *
 * Gated linear attention: Yang et al. 2024, "Gated Linear Attention Transformers with
 * Hardware-Efficient Training".
 *
 *   S_t = diag(exp(g_t)) S_{t-1} + k_t v_t^T
 *   o_t = S_t^T q_t / sqrt(dk)
 *   g   = log sigma(W_2 W_1 x + b_2) / tau
 *   y   = W_o (rms(o) (.) swish(W_g x))
 *
 * Every key channel decays at a rate of its own, which a low-rank map reads from the row. */
#include "variants/model/sublayer/sublayer.h"

static void build(struct steps *t)
{
    const struct mix *const m = mix_of(t);
    struct recurrence r = mix_recurrence(t, mix_qkv(t, false));
    const int low = step_linear(t, STEPS_INPUT, m->lora, "gk.1");
    const int z = step_affine(t, low, mix_keys(t), "gk.2");

    r.g = step_apply(t, z, CURVE_LOG_SIGMOID, 1 / m->gate_tau);
    mix_output(t, step_recur(t, r));
}

static const struct part_numbers numbers = MIX_NUMBERS(.lora = 16, .gate_tau = 16);
const struct mixer mixer_gla = {
    .name = "gla", .numbers = &numbers, .kind = &sublayer_steps, .gated = true, .build = build};

const struct variant variant_gla = {
    .name = "gla",
    .paper = "Yang et al. 2024, arXiv:2312.06635",
    .about = "a state whose channels decay at rates read from the row",
    .control = "retnet",
    MIX_LAYERS,
    .mixer = &mixer_gla,
    .out_gate = OUT_GATE_SWISH,
    MIX_SIZES,
};

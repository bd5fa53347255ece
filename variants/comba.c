/* SPDX-License-Identifier: MIT
 *
 * Comba: Hu et al. 2025, "Comba: Improving Bilinear RNNs with Closed-loop Control".
 *
 *   S'  = exp(g_t) S_{t-1}
 *   S_t = S' + beta_t k_t (v_t - S'^T p_t)^T
 *   o_t = S_t^T (q_t - D k_t) / sqrt(dk)
 *   p   = sigma(d) k; d and D are a number per head
 *   g   = -e^A softplus(W_a x + b_dt), a number per head
 *   y   = W_o (rms(o) (.) sigma(W_g x))
 *
 * Gated DeltaNet whose erasing has a rate of its own, and whose query leaves out what the newest key
 * returns. With d = inf and D = 0 it is that. */
#include "variants/model/sublayer/sublayer.h"

static void build(struct steps *t)
{
    const struct qkv x = mix_unit(t);
    const int z = step_linear(t, STEPS_INPUT, t->c->H, "beta");
    const int beta = step_apply(t, z, CURVE_SIGMOID, mix_of(t)->beta_max);
    const int dt = step_linear(t, STEPS_INPUT, t->c->H, "dt");
    const int step = step_curve(t, dt, CURVE_SOFTPLUS, 1, "dt_bias", INIT_STEP, 0);
    struct recurrence r = mix_recurrence(t, x);

    r.g = step_rate(t, step, 1, false, "A_log");
    const int p = step_same(t, t->c->H, CURVE_SIGMOID, "decay", INIT_CONST, 1);
    r.a = step_times(t, x.k, step_times(t, p, step_apply(t, r.g, CURVE_EXP, 1))); /* of S' */
    r.k = step_times(t, x.k, beta);
    r.b = step_apply(t, r.k, CURVE_NONE, -1);
    r.q = step_skip(t, x.q, step_apply(t, x.k, CURVE_NONE, -1), t->c->dh, "D");
    mix_output(t, step_recur(t, r));
}

static const struct part_numbers numbers = MIX_NUMBERS(.conv_width = 4);
const struct mixer mixer_comba = {
    .name = "comba", .numbers = &numbers, .kind = &sublayer_steps, .gated = true, .build = build};

const struct variant variant_comba = {
    .name = "comba",
    .paper = "Hu et al. 2025, arXiv:2506.02475",
    .about = "gdn whose erasing has a rate of its own; queries less the newest key",
    .control = "gdn --out-gate sigmoid",
    MIX_LAYERS,
    .mixer = &mixer_comba,
    .out_gate = OUT_GATE_SIGMOID,
    MIX_SIZES,
};

/* SPDX-License-Identifier: MIT
 *
 * Gated DeltaNet-2: Hatamizadeh et al. 2026, "Gated DeltaNet-2: Decoupling Erase and Write in Linear
 * Attention".
 *
 *   S'  = diag(exp(g_t)) S_{t-1}
 *   S_t = S' + k_t (w_t (.) v_t - S'^T (b_t (.) k_t))^T
 *   o_t = S_t^T q_t / sqrt(dk)
 *   b   = sigma(W_b x), a number per key channel; w = sigma(W_w x), one per column of values
 *   y   = W_o (rms(o) (.) sigma(W_2 W_1 x + b_2))
 *
 * Kimi delta attention whose one rate of a step, beta, becomes two gates: what is erased, by channel
 * of the keys, and what is written, by column of the values. With b = w = beta it is that. */
#include "variants/model/sublayer/sublayer.h"

static int gate(struct steps *t, int width, const char *name)
{
    return step_apply(t, step_linear(t, STEPS_INPUT, width, name), CURVE_SIGMOID, 1);
}

static void build(struct steps *t)
{
    const struct qkv x = mix_unit(t);
    const int rank = mix_of(t)->lora, keys = mix_keys(t), values = mix_values(t);
    const int dt = step_linear(t, step_linear(t, STEPS_INPUT, rank, "dt_a"), keys, "dt_b");
    const int step = step_curve(t, dt, CURVE_SOFTPLUS, 1, "dt_bias", INIT_STEP, 0);
    const int erased = step_times(t, x.k, gate(t, keys, "erase"));
    struct recurrence r = mix_recurrence(t, x);

    r.g = step_rate(t, step, t->c->dh, false, "A_log");
    r.a = step_times(t, erased, step_apply(t, r.g, CURVE_EXP, 1)); /* it reads S' */
    r.b = step_apply(t, x.k, CURVE_NONE, -1);
    r.v = step_times(t, x.v, gate(t, values, "write"));
    const int o = mix_normed(t, step_recur(t, r));
    const int z = step_affine(t, step_linear(t, STEPS_INPUT, rank, "g_a"), values, "g_b");
    t->result = step_times(t, o, step_apply(t, z, CURVE_SIGMOID, 1));
}

static const struct part_numbers numbers = MIX_NUMBERS(.conv_width = 4, .lora = 16);
const struct mixer mixer_gdn2 = {
    .name = "gdn2", .numbers = &numbers, .kind = &sublayer_steps, .build = build};

const struct variant variant_gdn2 = {
    .name = "gdn2",
    .paper = "Hatamizadeh et al. 2026, arXiv:2605.22791",
    .about = "kda whose erasing and writing have a gate each, by channel",
    .control = "kda",
    MIX_LAYERS,
    .mixer = &mixer_gdn2,
    .alias = "gated-deltanet-2",
    MIX_SIZES,
};

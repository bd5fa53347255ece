/* SPDX-License-Identifier: MIT
 *
 * Mamba-2: Dao and Gu 2024, "Transformers are SSMs: Generalized Models and Efficient Algorithms
 * Through Structured State Space Duality".
 *
 *   [z; x; B; C; dt] = W_in u      x, B, C pass a short convolution
 *   dt  = softplus(dt + b_dt)
 *   S_t = exp(-e^A dt) S_{t-1} + B_t (dt x_t)^T
 *   o_t = S_t^T C_t + D x_t
 *   y   = W_o rms(o (.) silu(z))                      the norm is over all heads
 *
 * B and C, the keys and queries, are shared by groups of heads. */
#include "variants/model/sublayer/sublayer.h"

static void build(struct steps *t)
{
    const struct config *const c = t->c;
    const int G = max_int(1, mix_of(t)->groups), values = mix_values(t), keys = G * c->dh;
    const int in = step_linear(t, STEPS_INPUT, 2 * values + 2 * keys + c->H, "in");
    const int inner = steps_columns(t, in, values, values + 2 * keys);
    const int conv = step_conv(t, inner, max_int(1, mix_of(t)->conv_width), true, true);
    const int x = steps_columns(t, conv, 0, values);
    const int dt = step_curve(t, steps_columns(t, in, 2 * values + 2 * keys, c->H), CURVE_SOFTPLUS,
                              1, "dt_bias", INIT_STEP, 0);
    struct recurrence r =
        mix_recurrence(t, (struct qkv){steps_columns(t, conv, values + keys, keys),
                                       steps_columns(t, conv, values, keys), step_times(t, x, dt)});

    r.q_heads = r.k_heads = G;
    r.g = step_rate(t, dt, 1, false, "A_log");
    const int o = step_skip(t, step_recur(t, r), x, config_dv(c), "D");
    const int z = step_apply(t, steps_columns(t, in, 0, values), CURVE_SILU, 1);
    t->result = mix_normed(t, step_times(t, o, z));
}

static const struct part_numbers numbers =
    MIX_NUMBERS(.conv_width = 4, .groups = 1, .norm_whole = true);
const struct mixer mixer_mamba2 = {
    .name = "mamba2", .numbers = &numbers, .kind = &sublayer_steps, .build = build};

/* 4 D^2 weights: all heads together are 4/3 as wide as the model. */
static int d_value(int D, int H, int dh) { return max_int(1, 4 * D / (3 * H)); }

const struct variant variant_mamba2 = {
    .name = "mamba2",
    .paper = "Dao and Gu 2024, arXiv:2405.21060",
    .about = "a state space whose step size is read from the row",
    .control = "linear --norm pre --norm-kind rms --ffn swiglu",
    MIX_LAYERS,
    .mixer = &mixer_mamba2,
    .d_value = d_value,
    .unscaled = true,
};

/* SPDX-License-Identifier: MIT
 *
 * Mamba: Gu and Dao 2023, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces".
 *
 *   [x; z]    = W_in u      x passes a short convolution
 *   [r; B; C] = W_x x
 *   dt        = softplus(W_dt r + b_dt)
 *   s_t       = exp(-e^A dt) (.) s_{t-1} + dt x_t B_t
 *   o_t       = s_t . C_t + D x_t, for each channel
 *   y         = W_o (o (.) silu(z))
 *
 * Each channel is a head of its own, whose values are one number: its state has a decay and a step
 * size for each of d_head numbers. B and C, the keys and queries, are shared by all channels. */
#include "variants/model/sublayer/sublayer.h"

static void build(struct steps *t)
{
    const int inner = mix_values(t), states = t->c->dh, rank = mix_of(t)->lora;
    const int in = step_linear(t, STEPS_INPUT, 2 * inner, "in");
    const int x =
        step_conv(t, steps_columns(t, in, 0, inner), max_int(1, mix_of(t)->conv_width), true, true);
    const int low = step_linear(t, x, rank + 2 * states, "x");
    const int dt = step_curve(t, step_linear(t, steps_columns(t, low, 0, rank), inner, "dt"),
                              CURVE_SOFTPLUS, 1, "dt_bias", INIT_STEP, 0);
    struct recurrence r =
        mix_recurrence(t, (struct qkv){steps_columns(t, low, rank + states, states),
                                       steps_columns(t, low, rank, states), step_times(t, x, dt)});

    r.heads = inner;
    r.dv = 1;
    r.q_heads = r.k_heads = 1;
    r.g = step_rate(t, dt, states, true, "A_log");
    const int o = step_skip(t, step_recur(t, r), x, 1, "D");
    const int z = step_apply(t, steps_columns(t, in, inner, inner), CURVE_SILU, 1);
    t->result = step_times(t, o, z);
}

static void usual(const struct config *c, void *numbers)
{
    mix_usual(c, numbers);
    ((struct mix *)numbers)->lora = (c->D + 15) / 16;
}

static const struct part_numbers numbers = {
    mix_choices, PRESET(struct mix, .conv_width = 4, .head_norm = MIX_UNNORMED), mix_check, usual};
const struct mixer mixer_mamba = {
    .name = "mamba", .numbers = &numbers, .kind = &sublayer_steps, .build = build};

/* 16 numbers for each channel, as published. */
static void sizes(int D, int H, int *dh, int *F) { *dh = 16; }

/* 4 D^2 weights: all heads together are 4/3 as wide as the model. */
static int d_value(int D, int H, int dh) { return max_int(1, 4 * D / (3 * H)); }

const struct variant variant_mamba = {
    .name = "mamba",
    .paper = "Gu and Dao 2023, arXiv:2312.00752",
    .about = "a state space for each channel, its step size read from the row",
    .control = "linear --norm pre --norm-kind rms --ffn swiglu",
    MIX_LAYERS,
    .mixer = &mixer_mamba,
    .sizes = sizes,
    .d_value = d_value,
    .unscaled = true,
};

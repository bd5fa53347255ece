/* SPDX-License-Identifier: MIT
 *
 * mLSTM: Beck et al. 2024, "xLSTM: Extended Long Short-Term Memory" (arXiv:2405.04517), with the
 * layer of the 7B model (arXiv:2503.13427).
 *
 *   S_t    = sigma(f_t) S_{t-1} + e^{i_t} k_t v_t^T
 *   z_t    = sigma(f_t) z_{t-1} + e^{i_t} k_t
 *   q      = q_t / sqrt(dk)
 *   o_t    = S_t^T q / max(|z_t . q|, 1)
 *   i, f   = cap(W x + b)
 *   cap(y) = 15 tanh(y / 15)
 *   y      = W_o (layer(o) (.) sigma(W_g x))
 *
 * The exponential of the input gate is kept finite by a running maximum (backends/recur.h). */
#include "variants/backends/recur.h"
#include "variants/model/sublayer/sublayer.h"

static int capped(struct steps *t, int x)
{
    const float cap = mix_of(t)->gate_cap;

    return cap > 0 ? step_apply(t, x, CURVE_CAP, cap) : x;
}

static void build(struct steps *t)
{
    struct recurrence r = mix_recurrence(t, mix_qkv(t, false));

    r.i = capped(t, step_affine(t, STEPS_INPUT, t->c->H, "i"));
    const int z = step_affine(t, STEPS_INPUT, t->c->H, "f");
    steps_ramp(t, (struct ramp){.from = 3, .to = 6, .power = {1}}); /* its bias, over heads */
    const int f = capped(t, z);
    r.g = step_apply(t, f, CURVE_LOG_SIGMOID, 1);
    r.norm = RECUR_MLSTM;
    mix_output(t, step_recur(t, r));
}

static const struct part_numbers numbers = MIX_NUMBERS(.head_norm = MIX_LAYER, .gate_cap = 15);
const struct mixer mixer_mlstm = {
    .name = "mlstm", .numbers = &numbers, .kind = &sublayer_steps, .gated = true, .build = build};

const struct variant variant_mlstm = {
    .name = "mlstm",
    .paper = "Beck et al. 2024, arXiv:2405.04517",
    .about = "a matrix state with exponential input and forget gates",
    .control = "linear --norm pre --norm-kind rms --ffn swiglu",
    MIX_LAYERS,
    .mixer = &mixer_mlstm,
    .out_gate = OUT_GATE_SIGMOID,
    MIX_SIZES,
};

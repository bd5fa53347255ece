/* SPDX-License-Identifier: MIT
 *
 * Gated DeltaNet: Yang et al. 2024, "Gated Delta Networks: Improving Mamba2 with Delta Rule".
 *
 *   S'  = exp(g_t) S_{t-1}        g = -e^A softplus(W_a x + b_dt), a number per head
 *   S_t = S' + beta_t k_t (v_t - S'^T k_t)^T      o_t = S_t^T q_t / sqrt(dk)
 *   y   = W_o (rms(o) (.) swish(W_g x))
 *
 * The delta rule on a state that decays as that of Mamba-2 does. */
#include "variant.h"
#include "variants/model/sublayer.h"
#include "variants/parts/parts.h"
#include "variants/steps/mix.h"

static void build(struct steps *t)
{
    struct qkv x = mix_qkv(t, true);

    x.q = step_unit(t, x.q, t->c->dh, 1e-6f, false);
    x.k = step_unit(t, x.k, t->c->dh, 1e-6f, false);
    struct recurrence r = mix_recurrence(t, x);
    const int z = step_linear(t, STEPS_INPUT, t->c->H, "beta");
    r.beta = step_curve(t, z, CURVE_SIGMOID, mix_of(t)->beta_max, NULL, INIT_ZERO, 0);
    const int dt = step_linear(t, STEPS_INPUT, t->c->H, "dt");
    const int step = step_curve(t, dt, CURVE_SOFTPLUS, 1, "dt_bias", INIT_STEP, 0);
    r.g = step_rate(t, step, 1, false, "A_log");
    mix_output(t, step_recur(t, r));
}

static void usual(const struct config *c, void *own)
{
    mix_usual(c, own, (struct mix){.conv_width = 4, .gate_tau = 1, .beta_max = 1});
}

static const struct own own = MIX_OWN(usual);
const struct mixer mixer_gdn = {
    .name = "gdn", .own = &own, .kind = &sublayer_steps, .build = build};

/* Keys are half as wide as values, which keeps the projections at about 4 D^2 weights. */
static void sizes(int D, int H, int *dh, int *F)
{
    (void)F;
    *dh = max_int(1, D / H / 2);
}

static int d_value(int D, int H, int dh)
{
    (void)D, (void)H;
    return 2 * dh;
}

const struct variant variant_gdn = {
    .name = "gdn",
    .paper = "Yang et al. 2024, arXiv:2412.06464",
    .about = "the delta rule on a state that decays",
    .pos = &pos_none,
    .mem = &mem_state,
    .ffn = &ffn_swiglu,
    .mixer = &mixer_gdn,
    .around = {.out_gate = OUT_GATE_SWISH},
    .wiring = WIRING_PRE,
    .norm_kind = NORM_RMS,
    .bare_ffn = true,
    .alias = "gated-deltanet",
    .sizes = sizes,
    .d_value = d_value,
};

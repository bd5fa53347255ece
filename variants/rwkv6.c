/* SPDX-License-Identifier: MIT
 *
 * RWKV-6: Peng et al. 2024, "Eagle and Finch: RWKV with Matrix-Valued States and Dynamic
 * Recurrence" (Finch).
 *
 *   d   = x_{t-1} - x_t
 *   x_c = x + d (.) (mu_c + m_c)
 *   m   = B_c tanh(A (x + d (.) mu_x))_c
 *   S_t = diag(exp(g_t)) S_{t-1} + k_t v_t^T
 *   g   = -exp(w + W_2 tanh(W_1 x_w))
 *   o_t = S_{t-1}^T r_t + (sum_n r u k) v_t
 *   y   = W_o (layer(o) (.) silu(W_g x_g))
 *   ffn = sigma(W_r x_r) (.) W_2 relu(W_1 x_k)^2
 *
 * Each projection reads its own mixture of a row and the row before it; how much of each is
 * learned, and corrected by the row. The newest key enters with a weight u of its own. */
#include "variants/model/sublayer/sublayer.h"

enum { SHIFTED_X, SHIFTED_W, SHIFTED_K, SHIFTED_V, SHIFTED_R, SHIFTED_G, SHIFTS };
static const float shift_powers[SHIFTS] = {1, 1, 1, 1, 0.5f, 0.5f};

static void build(struct steps *t)
{
    const int D = t->c->D, rank = mix_of(t)->lora, keys = mix_keys(t), values = mix_values(t);
    const int maa = steps_tensor(t, INIT_RAMP, 0, 2, (const int[]){SHIFTS, D}, "maa");
    steps_ramp(t, mix_shifts(t, shift_powers, SHIFTS));
    const int d = step_shift(t, STEPS_INPUT, "shift");
    const int first = step_mixes(t, STEPS_INPUT, d, NO_VALUE, (struct mix_weights){maa, 0, 1});
    const int low = step_linear(t, first, (SHIFTS - 1) * rank, "mix_a");
    const int code = step_apply(t, low, CURVE_TANH, 1);
    const int m = step_blocks(t, code, SHIFTS - 1, D, "mix_b.weight");
    const int all = step_mixes(t, STEPS_INPUT, d, m, (struct mix_weights){maa, 1, SHIFTS - 1});
#define SHIFTED(c) steps_columns(t, all, (SHIFTED_##c - 1) * D, D)
    const int q = step_linear(t, SHIFTED(R), keys, "q");
    const int k = step_linear(t, SHIFTED(K), keys, "k");
    const int v = step_linear(t, SHIFTED(V), values, "v");
    const int w = step_linear(t, SHIFTED(W), rank, "decay_a");
    const int z = step_linear(t, step_apply(t, w, CURVE_TANH, 1), keys, "decay_b");
    struct recurrence r = mix_recurrence(t, (struct qkv){q, k, v});
    r.g = step_curve(t, z, CURVE_EXP, -1, "decay", INIT_RAMP, 0);
    /* Over all key channels, in the last layer mostly slow ones. */
    steps_ramp(t, (struct ramp){.from = -6, .to = -1, .power = {0.7f + 1.3f * mix_depth(t)}});
    r.bonus = "u";
    const int o = mix_normed(t, step_recur(t, r));
    const int gate = step_linear(t, SHIFTED(G), values, "g");
    t->result = step_times(t, o, step_apply(t, gate, CURVE_SILU, 1));
#undef SHIFTED
}

static const struct part_numbers numbers =
    MIX_NUMBERS(.lora = 32, .head_norm = MIX_LAYER, .norm_bias = true);
const struct mixer mixer_rwkv6 = {
    .name = "rwkv6", .numbers = &numbers, .kind = &sublayer_steps, .build = build};

/* ---- channel mix --------------------------------------------------------------------------- */

static void build_ffn(struct steps *t)
{
    const int D = t->c->D;
    const int maa = steps_tensor(t, INIT_RAMP, 0, 2, (const int[]){2, D}, "maa");
    steps_ramp(t, mix_shifts(t, shift_powers, 2));
    const int d = step_shift(t, STEPS_INPUT, "ff_shift");
    const int all = step_mixes(t, STEPS_INPUT, d, NO_VALUE, (struct mix_weights){maa, 0, 2});
    const int hidden = step_linear(t, steps_columns(t, all, 0, D), t->c->F, "1");
    const int k = step_apply(t, hidden, CURVE_RELU_SQUARED, 1);
    const int r = step_linear(t, steps_columns(t, all, D, D), D, "r");
    const int gate = step_apply(t, r, CURVE_SIGMOID, 1);

    t->result = step_times(t, step_linear(t, k, D, "2"), gate);
    t->last = NULL;
}

const struct ffn ffn_rwkv6 = {.name = "rwkv6", .build = build_ffn};

/* 3 D wide, with the receptance the block has about 12 D^2 weights. */
static void sizes(int D, int H, int *dh, int *F) { *F = 3 * D; }

const struct variant variant_rwkv6 = {
    .name = "rwkv6",
    .paper = "Peng et al. 2024, arXiv:2404.05892",
    .about = "a state with decays, a bonus and token shifts read from the row",
    .control = "linear --norm pre --ffn rwkv6",
    .pos = &pos_none,
    .mem = &mem_state,
    .ffn = &ffn_rwkv6,
    .mixer = &mixer_rwkv6,
    .out_gate = OUT_GATE_SWISH,
    .head_eps = 64e-5f,
    .wiring = WIRING_PRE,
    .sizes = sizes,
    .unscaled = true,
    .bare_ffn = true,
};

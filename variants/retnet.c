/* SPDX-License-Identifier: MIT
 *
 * Retentive network: Sun et al. 2023, "Retentive Network: A Successor to Transformer".
 *
 *   S_t     = gamma_h S_{t-1} + k_t v_t^T
 *   o_t     = S_t^T q_t / sqrt(dk)
 *   gamma_h = 1 - 2^(-5-h)
 *   y       = W_o (rms(o) (.) swish(W_g x))
 *
 * A constant decay per head takes the place of the softmax; q and k are rotated by position, as
 * rotary positions do. */
#include "variants/model/sublayer/sublayer.h"

/* One constant per head, in every row. */
static void decays(const struct step_call *c)
{
    for (int i = 0; i < c->B * c->L; i++)
        for (int h = 0; h < c->out->n; h++)
            matrix_row(&c->out[0], i)[h] = (float)log1p(-exp2(-5.0 - h));
}

static void build(struct steps *t)
{
    static const struct step_kind kind = {.name = "decays", .forward = decays};
    const struct qkv x = mix_qkv(t, false);
    struct recurrence r = mix_recurrence(t, x);

    r.q = step_rotate(t, x.q, t->c->dh, 10000, mix_of(t)->pairs);
    r.k = step_rotate(t, x.k, t->c->dh, 10000, mix_of(t)->pairs);
    r.g = step_writes(t, steps_add(t, &kind), t->c->H);
    mix_output(t, step_recur(t, r));
}

static const struct part_numbers numbers = MIX_NUMBERS(.rotates = true);
const struct mixer mixer_retnet = {
    .name = "retnet", .numbers = &numbers, .kind = &sublayer_steps, .gated = true, .build = build};

const struct variant variant_retnet = {
    .name = "retnet",
    .paper = "Sun et al. 2023, arXiv:2307.08621",
    .about = "a state that decays at a constant rate per head",
    .control = "linear --norm pre --norm-kind rms --ffn swiglu",
    MIX_LAYERS,
    .mixer = &mixer_retnet,
    .out_gate = OUT_GATE_SWISH,
    MIX_SIZES,
};

/* SPDX-License-Identifier: MIT
 *
 * Gated slot attention: Zhang et al. 2024, "Gated Slot Attention for Efficient Linear-Time Sequence
 * Modeling".
 *
 *   f   = log sigma(W_f x) / tau, s = 1 - exp(f), numbers of m slots a head
 *   K_t = K_{t-1} diag(exp(f_t)) + k_t s_t^T
 *   V_t = diag(exp(f_t)) V_{t-1} + s_t v_t^T
 *   o_t = V_t^T softmax(K_t^T q_t)
 *   q, k, v = silu(W x);  y = W_o rms(silu(o))              the norm is over all heads
 *
 * Attention to m slots (as many as a head is wide), each the sum of keys and of values that it has
 * taken and not yet forgotten. For the keys each slot is a state of its own, of one column. */
#include "variants/model/sublayer/sublayer.h"
#include "variants/parts/linear.h"

/* ---- 1 - exp(f) ------------------------------------------------------------------------------ */

static void taken_forward(const struct step_call *c)
{
#pragma omp parallel for num_threads(c->g->threads)
    for (int i = 0; i < c->B * c->L; i++)
        for (int e = 0; e < c->out->n; e++)
            matrix_row(c->out, i)[e] = -expm1f(matrix_row(c->in, i)[e]);
}

static void taken_backward(const struct step_call *c)
{
#pragma omp parallel for num_threads(c->g->threads)
    for (int i = 0; i < c->B * c->L; i++)
        for (int e = 0; e < c->out->n; e++)
            matrix_row(c->d_in, i)[e] -=
                matrix_row(c->d_out, i)[e] * (1 - matrix_row(c->out, i)[e]);
}

/* ---- softmax over the slots of a head -------------------------------------------------------- */

static void softmax_forward(const struct step_call *c)
{
    const int m = c->steps->c->dh, rows = c->B * c->L * (c->out->n / m);

    memcpy(c->out->at, c->in->at, sizeof(float) * (size_t)rows * (size_t)m);
    rows_softmax(c->g, c->out->at, rows, m);
}

static void softmax_backward(const struct step_call *c)
{
    const int m = c->steps->c->dh;

    rows_softmax_grad(c->g, c->d_out->at, c->out->at, c->B * c->L * (c->out->n / m), m);
    step_add_gradient(c, 0);
}

/* ---- the layer ------------------------------------------------------------------------------- */

static int own(struct steps *t, const struct step_kind *kind, int x)
{
    return step_writes(t, STEP_READING(t, kind, x), t->value[x].width);
}

static void build(struct steps *t)
{
    static const struct step_kind taken = {
        .name = "taken", .forward = taken_forward, .backward = taken_backward};
    static const struct step_kind softmax = {
        .name = "softmax", .forward = softmax_forward, .backward = softmax_backward};
    struct recurrence keys = mix_recurrence(t, mix_qkv(t, true)), values = keys;
    const int z = step_linear(t, STEPS_INPUT, mix_keys(t), "f");

    values.g = step_apply(t, z, CURVE_LOG_SIGMOID, 1 / mix_of(t)->gate_tau);
    values.k = own(t, &taken, values.g);
    keys.g = step_copy(t, values.g);
    keys.v = step_copy(t, values.k);
    keys.q_heads = keys.k_heads = keys.heads;
    keys.heads = mix_keys(t);
    keys.dv = 1;
    keys.state = "state_k";
    values.q = own(t, &softmax, step_recur(t, keys));
    values.scale = 1;
    mix_output(t, step_apply(t, step_recur(t, values), CURVE_SILU, 1));
}

static const struct part_numbers numbers = MIX_NUMBERS(.norm_whole = true, .gate_tau = 8);
const struct mixer mixer_gsa = {
    .name = "gsa", .numbers = &numbers, .kind = &sublayer_steps, .gated = true, .build = build};

const struct variant variant_gsa = {
    .name = "gsa",
    .paper = "Zhang et al. 2024, arXiv:2409.07146",
    .about = "attention to slots, which forget keys and values at rates read from the row",
    .control = "gla --out-gate none",
    MIX_LAYERS,
    .mixer = &mixer_gsa,
    MIX_SIZES,
    .unscaled = true,
};

/* SPDX-License-Identifier: MIT
 *
 * DeltaProduct: Siems et al. 2025, "DeltaProduct: Improving State-Tracking in Linear RNNs via
 * Householder Products".
 *
 *   S   = S_{t-1}, or with a gate exp(g_t) S_{t-1}
 *   S  <- S + beta_j k_j (v_j - S^T k_j)^T           for each of n keys and values of the token
 *   o_t = S^T q_t / sqrt(dk)
 *   g   = -e^A softplus(W_a x + b_dt), a number per head
 *   y   = W_o (rms(o) (.) swish(W_g x))
 *
 * The delta rule n times for each token: products of n reflections, which turn the state as none of
 * them can. With n = 1 it is DeltaNet, or Gated DeltaNet. As one recurrence it has n rows for each of
 * the layer's: the first decays, and the last is asked. */
#include "variants/model/sublayer/sublayer.h"

/* ---- x in one of n places of a row, zeros in the others ------------------------------------- */

enum { PLACE }; /* numbers */

static void placed(const struct step_call *c)
{
    const int n = c->in->n;

    for (int i = 0; i < c->B * c->L; i++) {
        memset(matrix_row(c->out, i), 0, sizeof(float) * (size_t)c->out->n);
        memcpy(matrix_row(c->out, i) + c->s->n[PLACE] * n, matrix_row(c->in, i),
               sizeof(float) * (size_t)n);
    }
}

static void placed_grad(const struct step_call *c)
{
    for (int i = 0; i < c->B * c->L; i++)
        for (int e = 0; e < c->in->n; e++)
            matrix_row(c->d_in, i)[e] += matrix_row(c->d_out, i)[c->s->n[PLACE] * c->in->n + e];
}

static int step_placed(struct steps *t, int x, int n, int place)
{
    static const struct step_kind kind = {
        .name = "placed", .forward = placed, .backward = placed_grad};
    struct step *const s = STEP_READING(t, &kind, x);

    s->n[PLACE] = place;
    return step_writes(t, s, n * t->value[x].width);
}

/* ---- the layer ------------------------------------------------------------------------------ */

static void build_from(struct steps *t, struct recurrence r)
{
    const int n = mix_of(t)->delta_steps, values = mix_values(t);

    r.rows = n;
    r.q = step_placed(t, r.q, n, n - 1);
    r.v = step_copy(t, r.v);
    if (r.g != NO_VALUE)
        r.g = step_placed(t, r.g, n, 0);
    mix_output(t, step_copy(t, steps_columns(t, step_recur(t, r), (n - 1) * values, values)));
}

static void build(struct steps *t) { build_from(t, mix_delta(t)); }

static void build_gated(struct steps *t)
{
    struct recurrence r = mix_delta(t);

    const int dt = step_linear(t, STEPS_INPUT, t->c->H, "dt");
    const int step = step_curve(t, dt, CURVE_SOFTPLUS, 1, "dt_bias", INIT_STEP, 0);
    r.g = step_rate(t, step, 1, false, "A_log");
    build_from(t, r);
}

static const struct part_numbers numbers =
    MIX_NUMBERS(.conv_width = 4, .delta_steps = 2, .beta_max = 2, .writes = true);
const struct mixer mixer_deltaproduct = {.name = "deltaproduct",
                                         .numbers = &numbers,
                                         .kind = &sublayer_steps,
                                         .gated = true,
                                         .build = build};
const struct mixer mixer_gated_deltaproduct = {.name = "gated_deltaproduct",
                                               .numbers = &numbers,
                                               .kind = &sublayer_steps,
                                               .gated = true,
                                               .build = build_gated};

const struct variant variant_deltaproduct = {
    .name = "deltaproduct",
    .paper = "Siems et al. 2025, arXiv:2502.10297",
    .about = "several steps of the delta rule for each token",
    .control = "deltanet",
    MIX_LAYERS,
    .mixer = &mixer_deltaproduct,
};

const struct variant variant_gated_deltaproduct = {
    .name = "gated-deltaproduct",
    .paper = "Siems et al. 2025, arXiv:2502.10297",
    .about = "several steps of the delta rule for each token, on a state that decays",
    .control = "gdn",
    MIX_LAYERS,
    .mixer = &mixer_gated_deltaproduct,
    .out_gate = OUT_GATE_SWISH,
    MIX_SIZES,
};

/* SPDX-License-Identifier: MIT
 *
 * Preconditioned delta rules: Tumma et al. 2026, "Preconditioned DeltaNet: Curvature-aware Sequence
 * Modeling for Linear Recurrences"; what the paper leaves open is as in flash-linear-attention.
 *
 *   A_t = exp(a_t) A_{t-1} + b_t k_t^2,  a and b as g and beta below, with maps of their own
 *   M_t = 1.5^(-r / (1 + |r|)),  r = log(A_t + 10^-6) - c;  c is a number per head
 *   S'  = exp(g_t) S_{t-1}
 *   S_t = S' + beta_t (M_t (.) k_t) (v_t - S'^T k_t)^T
 *   o_t = S_t^T q_t / sqrt(dk)
 *
 * Channels in which keys were large write less, others more, as a diagonal preconditioner of the
 * least squares that the delta rule descends. pgdn is Gated DeltaNet so, pkda Kimi delta attention;
 * M = 1 gives them. */
#include "variants/model/sublayer/sublayer.h"

/* ---- M --------------------------------------------------------------------------------------- */

static const double log_most = 0.405465108108164; /* log 1.5 */

static double distance(const struct step_call *c, int e, double A)
{
    return log(A + 1e-6) - (double)c->param[0]->data[e / c->steps->c->dh];
}

static void forward(const struct step_call *c)
{
#pragma omp parallel for num_threads(step_team(c))
    for (int i = 0; i < c->B * c->L; i++)
        for (int e = 0; e < c->out->n; e++) {
            const double r = distance(c, e, (double)matrix_row(c->in, i)[e]);
            matrix_row(c->out, i)[e] = (float)exp(-log_most * r / (1 + fabs(r)));
        }
}

/* A thread has heads, whose centres' gradients add up in the order of rows. */
static void backward(const struct step_call *c)
{
    const int dh = c->steps->c->dh;

#pragma omp parallel for num_threads(step_team(c))
    for (int h = 0; h < c->out->n / dh; h++) {
        double sum = 0;
        for (int i = 0; i < c->B * c->L; i++)
            for (int e = h * dh; e < (h + 1) * dh; e++) {
                const double A = (double)matrix_row(c->in, i)[e], r = distance(c, e, A);
                const double M = (double)matrix_row(c->out, i)[e], by = 1 + fabs(r);
                const double d = (double)matrix_row(c->d_out, i)[e] * M * log_most / (by * by);
                sum += d;
                matrix_row(c->d_in, i)[e] -= (float)(d / (A + 1e-6));
            }
        c->param[0]->grad[h] += (float)sum;
    }
}

static int conditioned(struct steps *t, int k)
{
    static const struct step_kind kind = {
        .name = "precondition", .forward = forward, .backward = backward};
    const int z = step_linear(t, STEPS_INPUT, t->c->H, "beta_atk");
    const int dt = step_linear(t, STEPS_INPUT, t->c->H, "dt_atk");
    const int step = step_curve(t, dt, CURVE_SOFTPLUS, 1, "dt_bias_atk", INIT_STEP, 0);
    struct recurrence r = mix_recurrence(t, (struct qkv){NO_VALUE, NO_VALUE, NO_VALUE});

    r.v = step_times(t, step_times(t, k, k), step_apply(t, z, CURVE_SIGMOID, 1));
    r.g = step_rate(t, step, 1, false, "A_log_atk");
    r.dk = 1, r.dv = t->c->dh, r.scale = 1, r.state = "state_a";
    const int A = step_recur(t, r);
    struct step *const s = STEP_READING(t, &kind, A);
    step_vector(t, s, INIT_CONST, -0.2f, t->c->H, "atk");
    return step_times(t, k, step_writes(t, s, t->value[A].width));
}

/* ---- the layers ------------------------------------------------------------------------------ */

static int steps_of(struct steps *t, int dt)
{
    return step_curve(t, dt, CURVE_SOFTPLUS, 1, "dt_bias", INIT_STEP, 0);
}

/* g: log decays of heads or of their channels. */
static void delta(struct steps *t, struct qkv x, int g)
{
    const int z = step_linear(t, STEPS_INPUT, t->c->H, "beta");
    struct recurrence r = mix_recurrence(t, x);

    r.g = g;
    r.k = step_times(t, conditioned(t, x.k), step_apply(t, z, CURVE_SIGMOID, 1));
    r.a = step_times(t, x.k, step_apply(t, g, CURVE_EXP, 1)); /* it reads S' */
    r.b = step_apply(t, r.k, CURVE_NONE, -1);
    mix_output(t, step_recur(t, r));
}

static void build_pgdn(struct steps *t)
{
    const struct qkv x = mix_unit(t);
    const int step = steps_of(t, step_linear(t, STEPS_INPUT, t->c->H, "dt"));

    delta(t, x, step_rate(t, step, 1, false, "A_log"));
}

static void build_pkda(struct steps *t)
{
    const struct qkv x = mix_unit(t);
    const int low = step_linear(t, STEPS_INPUT, mix_of(t)->lora, "dt_a");
    const int step = steps_of(t, step_linear(t, low, mix_keys(t), "dt_b"));

    delta(t, x, step_rate(t, step, t->c->dh, false, "A_log"));
}

static const struct part_numbers pgdn_numbers = MIX_NUMBERS(.conv_width = 4);
static const struct part_numbers pkda_numbers = MIX_NUMBERS(.conv_width = 4, .lora = 16);

#define PRECONDITIONED(word, like, says, gate)                                                     \
    const struct mixer mixer_##word = {.name = #word,                                              \
                                       .numbers = &word##_numbers,                                 \
                                       .kind = &sublayer_steps,                                    \
                                       .gated = true,                                              \
                                       .build = build_##word};                                     \
    const struct variant variant_##word = {                                                        \
        .name = #word,                                                                             \
        .paper = "Tumma et al. 2026, arXiv:2604.21100",                                            \
        .about = says,                                                                             \
        .control = #like,                                                                          \
        MIX_LAYERS,                                                                                \
        .mixer = &mixer_##word,                                                                    \
        .out_gate = gate,                                                                          \
        MIX_SIZES,                                                                                 \
    };

PRECONDITIONED(pgdn, gdn, "gdn whose writing is preconditioned by the sums of squared keys",
               OUT_GATE_SWISH)
PRECONDITIONED(pkda, kda, "kda whose writing is preconditioned by the sums of squared keys",
               OUT_GATE_SIGMOID)

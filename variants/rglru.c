/* SPDX-License-Identifier: MIT
 *
 * The real-gated linear recurrent unit, and Griffin: De et al. 2024, "Griffin: Mixing Gated Linear
 * Recurrences with Local Attention for Efficient Language Models".
 *
 *   r   = sigma(W_r u + b_r), i = sigma(W_i u + b_i)      u is W_x x behind a short convolution
 *   g   = -8 softplus(L) (.) r, a number per channel
 *   h_t = exp(g) (.) h_{t-1} + sqrt(1 - exp(2 g)) (.) (i (.) u_t)
 *   y   = W_o (h (.) gelu(W_g x))
 *
 * Each number of the state decays by itself, and what it takes keeps its variance. W_r and W_i map
 * heads apart. Griffin has attention with a window, and one head of keys and values, after every two
 * such layers. */
#include "variants/model/sublayer/sublayer.h"

/* ---- sqrt(1 - exp(2 g)) --------------------------------------------------------------------- */

static void forward(const struct step_call *c)
{
#pragma omp parallel for num_threads(c->g->threads)
    for (int i = 0; i < c->B * c->L; i++)
        for (int e = 0; e < c->out->n; e++)
            matrix_row(c->out, i)[e] = sqrtf(-expm1f(2 * matrix_row(c->in, i)[e]));
}

/* -exp(2 g) / y, whose divisor is at least 1/2000: a channel that keeps all has a finite gradient. */
static void backward(const struct step_call *c)
{
#pragma omp parallel for num_threads(c->g->threads)
    for (int i = 0; i < c->B * c->L; i++)
        for (int e = 0; e < c->out->n; e++) {
            const float y = matrix_row(c->out, i)[e];
            matrix_row(c->d_in, i)[e] -= matrix_row(c->d_out, i)[e] * (1 - y * y) / fmaxf(y, 5e-4f);
        }
}

static int step_share(struct steps *t, int g)
{
    static const struct step_kind kind = {
        .name = "share", .forward = forward, .backward = backward};
    return step_writes(t, STEP_READING(t, &kind, g), t->value[g].width);
}

/* ---- the layer ------------------------------------------------------------------------------ */

static int gate(struct steps *t, int u, const char *weight, const char *bias)
{
    const int z = step_blocks(t, u, t->c->H, config_dv(t->c), weight);

    return step_curve(t, z, CURVE_SIGMOID, 1, bias, INIT_ZERO, 0);
}

static void build(struct steps *t)
{
    const int width = mix_values(t), x = step_linear(t, STEPS_INPUT, width, "x");
    const int u = step_conv(t, x, max_int(1, mix_of(t)->conv_width), true, false);
    const int decay = step_same(t, width, CURVE_SOFTPLUS, "L", INIT_STEP, 0);
    const int keeps = step_times(t, gate(t, u, "r.weight", "r.bias"), decay);
    const int takes = step_times(t, gate(t, u, "i.weight", "i.bias"), u);
    struct recurrence r = mix_recurrence(t, (struct qkv){NO_VALUE, NO_VALUE, NO_VALUE});

    r.g = step_apply(t, keeps, CURVE_NONE, -8);
    r.v = step_times(t, takes, step_share(t, r.g));
    r.heads = width;
    r.dk = r.dv = 1;
    const int h = step_recur(t, r), z = step_linear(t, STEPS_INPUT, width, "g");
    t->result = step_times(t, h, step_apply(t, z, CURVE_GELU, 1));
}

static const struct part_numbers numbers = MIX_NUMBERS(.conv_width = 4, .head_norm = MIX_UNNORMED);
const struct mixer mixer_rglru = {.name = "rglru",
                                  .numbers = &numbers,
                                  .kind = &sublayer_steps,
                                  .unscaled = true,
                                  .build = build};

/* 4 D^2 weights in three maps, besides the heads' own. */
static void sizes(int D, int H, int *dh, int *F) { *dh = 1; }

static int d_value(int D, int H, int dh) { return max_int(1, 4 * D / (3 * H)); }

const struct variant variant_rglru = {
    .name = "rglru",
    .paper = "De et al. 2024, arXiv:2402.19427",
    .about = "numbers that decay by gates of a short convolution, and keep their variance",
    .control = "mingru",
    MIX_LAYERS,
    .mixer = &mixer_rglru,
    .sizes = sizes,
    .d_value = d_value,
    .unscaled = true,
};

const struct variant variant_griffin = {
    .name = "griffin",
    .paper = "De et al. 2024, arXiv:2402.19427",
    .about = "as rglru; every third layer attends to the newest 1024 keys",
    .control = "rglru",
    .pos = &pos_rope,
    .mem = &mem_hybrid,
    LLAMA_LAYERS,
    .mixer = &mixer_rglru,
    .stack = {3, {false, false, true}},
    .recurrent = &variant_rglru,
    .layer_windows = {1, {1024}},
    .kv_heads = 1,
};

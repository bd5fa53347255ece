/* SPDX-License-Identifier: MIT
 *
 * Average attention: Zhang et al. 2018, "Accelerating Neural Transformer via an Average Attention
 * Network".
 *
 *   g_t    = FFN((x_0 + .. + x_t) / (t + 1))
 *   [i; f] = sigma(W [x_t; g_t] + b)
 *   y      = i x_t + f g_t
 *
 * The average of all positions so far replaces attention. A token costs the same after any context:
 * the running sum is the whole state. */
#include "variants/model/sublayer/sublayer.h"

static void build(struct steps *t)
{
    const int D = t->c->D, mean = step_mean(t, STEPS_INPUT, "sum", "count");
    const int hidden = step_apply(t, step_affine(t, mean, t->c->F, "ff.1"), CURVE_RELU, 1);
    const int both = steps_value(t, 2 * D), g = steps_columns(t, both, D, D);

    step_affine_to(t, g, hidden, "ff.2");
    steps_residual(t);
    step_copy_to(t, steps_columns(t, both, 0, D), STEPS_INPUT);
    const int share = step_apply(t, step_affine(t, both, 2 * D, "gate"), CURVE_SIGMOID, 1);
    t->result =
        step_blend(t, steps_columns(t, share, 0, D), STEPS_INPUT, steps_columns(t, share, D, D), g);
    t->last = NULL;
}

const struct mixer mixer_aan = {
    .name = "aan",
    .kind = &sublayer_sums,
    .unscaled = true,
    .prefix = "aan.",
    .counts = true,
    .has_ffn = true,
    .build = build,
};

const struct variant variant_aan = {
    .name = "aan",
    .paper = "Zhang et al. 2018, arXiv:1805.00631",
    .about = "a gated average of all positions so far",
    .control = "vanilla",
    .pos = &pos_sinusoid,
    .mem = &mem_sum,
    .mixer = &mixer_aan,
};

/* SPDX-License-Identifier: MIT
 *
 * The gated short convolution of LFM2: Liquid AI 2025, "LFM2 Technical Report", section 2.2.
 *
 *   y = W_o (c (.) conv(b (.) x'))      b, c, x' three maps of the input
 *
 * The convolution is causal, a few taps for each channel; nothing else carries the past. Models have
 * attention, with normed queries and keys, in every third layer or so. */
#include "variants/model/sublayer/sublayer.h"

enum { MOST_TAPS = 256 };
struct numbers {
    int taps;
    bool bias;
};

static const struct choice choices[] = {
    ROW_INT(struct numbers, taps, "short_taps", 1, MOST_TAPS, "rows that the convolution reads",
            .absent = "3", SETTING),
    ROW_FLAG(struct numbers, bias, "short_bias", "1: its maps and the convolution have biases",
             .absent = "0", SETTING),
    {0},
};

static const struct part_numbers numbers = {choices, PRESET(struct numbers, .taps = 3)};

static int map(struct steps *t, bool bias, const char *name)
{
    return bias ? step_affine(t, STEPS_INPUT, t->c->D, name)
                : step_linear(t, STEPS_INPUT, t->c->D, name);
}

static void build(struct steps *t)
{
    const struct numbers *const n = config_numbers(t->c, SLOT_MIXER);
    const int b = map(t, n->bias, "b"), c = map(t, n->bias, "c"), x = map(t, n->bias, "x");

    t->result = step_times(t, c, step_conv(t, step_times(t, b, x), n->taps, n->bias, false));
    t->last_bias = n->bias ? "o.bias" : NULL;
}

const struct mixer mixer_shortconv = {.name = "shortconv",
                                      .numbers = &numbers,
                                      .kind = &sublayer_steps,
                                      .unscaled = true,
                                      .build = build};

const struct variant variant_shortconv = {
    .name = "shortconv",
    .paper = "Liquid AI 2025, arXiv:2511.23404",
    .about = "gated convolutions of three rows, and nothing else of the past",
    .control = "linear --norm pre --norm-kind rms --ffn swiglu",
    .pos = &pos_none,
    .mem = &mem_state,
    LLAMA_LAYERS,
    .mixer = &mixer_shortconv,
    .unscaled = true,
};

const struct variant variant_lfm2 = {
    .name = "lfm2",
    .paper = "Liquid AI 2025, arXiv:2511.23404",
    .about = "as shortconv; every third layer attends, with normed queries and keys",
    .control = "shortconv",
    .pos = &pos_rope,
    .mem = &mem_hybrid,
    LLAMA_LAYERS,
    .mixer = &mixer_shortconv,
    .stack = {3, {false, false, true}},
    .recurrent = &variant_shortconv,
    .kv_heads = 2,
    .around = {&head_qk_norm},
};

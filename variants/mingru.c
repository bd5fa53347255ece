/* SPDX-License-Identifier: MIT
 *
 * Minimal gated recurrences: Feng et al. 2024, "Were RNNs All We Needed?".
 *
 *   minGRU    h_t = (1 - z) h_{t-1} + z h~
 *             z   = sigma(W_z x + b)
 *             h~  = W_h x + b
 *   minLSTM   h_t = f' h_{t-1} + i' h~
 *             f'  = f / (f + i)
 *             i'  = i / (f + i)
 *   both      y   = W_o h
 *
 * A GRU and an LSTM whose gates no longer read the state: each number of it decays by itself. In
 * log space the candidate is positive: h~ + 1/2 where it is, sigma(h~) where it is not (appendix
 * B). */
#include "variants/model/sublayer/sublayer.h"

extern const struct variant variant_minlstm;

struct numbers {
    bool log_space;
    bool three_gates; /* minLSTM */
};

static const struct choice choices[] = {
    ROW_FLAG(struct numbers, log_space, "log_space", "1: candidates are positive", .absent = "1",
             SETTING),
    ROW_FLAG(struct numbers, three_gates, "minlstm", NULL, .tensor = "attn.f.weight"),
    {0},
};

static void usual(const struct config *c, void *numbers)
{
    *(struct numbers *)numbers = (struct numbers){true, c->variant == &variant_minlstm};
}

static const struct part_numbers numbers = {choices, .size = NUMBERS_SIZE(struct numbers),
                                            .usual = usual};

static const struct numbers *numbers_of(const struct steps *t)
{
    return config_numbers(t->c, SLOT_MIXER);
}

/* What decides the share that is written, sigma(x), and the log of what stays, log sigma(-x): with
 * gates i = sigma(z) and f = sigma(f) of their own, x = log(i / f). */
static int written(struct steps *t, int z, int f)
{
    if (f == NO_VALUE)
        return z;
    return step_plus(t, step_apply(t, z, CURVE_LOG_SIGMOID, 1),
                     step_apply(t, f, CURVE_LOG_SIGMOID, -1));
}

static void build(struct steps *t)
{
    const int width = mix_values(t);
    const int z = step_affine(t, STEPS_INPUT, width, "z");
    const int h = step_affine(t, STEPS_INPUT, width, "h");
    const int f = numbers_of(t)->three_gates ? step_affine(t, STEPS_INPUT, width, "f") : NO_VALUE;
    const int x = written(t, z, f), share = step_apply(t, x, CURVE_SIGMOID, 1);
    const int to = numbers_of(t)->log_space ? step_apply(t, h, CURVE_HALF_SIGMOID, 1) : h;
    struct recurrence r = mix_recurrence(t, (struct qkv){NO_VALUE, NO_VALUE, NO_VALUE});

    r.g = step_apply(t, x, CURVE_SOFTPLUS, -1);
    r.v = step_times(t, share, to);
    r.heads = width;
    r.dk = r.dv = 1;
    t->result = step_recur(t, r);
}

const struct mixer mixer_mingru = {.name = "mingru",
                                   .numbers = &numbers,
                                   .kind = &sublayer_steps,
                                   .unscaled = true,
                                   .build = build,
                                   .excludes = EXCLUDES(HAS_GROUPS)};

/* 4 D^2 weights: three maps as wide as 4/3 D, or four as wide as D. */
static void sizes(int D, int H, int *dh, int *F) { *dh = 1; }

static int width_of_gru(int D, int H, int dh) { return max_int(1, 4 * D / (3 * H)); }

static int width_of_lstm(int D, int H, int dh) { return max_int(1, D / H); }

const struct variant variant_mingru = {
    .name = "mingru",
    .paper = "Feng et al. 2024, arXiv:2410.01201",
    .about = "a GRU whose gates do not read the state",
    .control = "linear --norm pre --norm-kind rms --ffn swiglu",
    MIX_LAYERS,
    .mixer = &mixer_mingru,
    .sizes = sizes,
    .d_value = width_of_gru,
    .unscaled = true,
};

const struct variant variant_minlstm = {
    .name = "minlstm",
    .paper = "Feng et al. 2024, arXiv:2410.01201",
    .about = "an LSTM whose gates do not read the state",
    .control = "mingru",
    MIX_LAYERS,
    .mixer = &mixer_mingru,
    .sizes = sizes,
    .d_value = width_of_lstm,
    .unscaled = true,
};

/* SPDX-License-Identifier: MIT
 *
 * Minimal gated recurrences: Feng et al. 2024, "Were RNNs All We Needed?".
 *
 *   minGRU    h_t = (1 - z) h_{t-1} + z h~                 z = sigma(W_z x + b), h~ = W_h x + b
 *   minLSTM   h_t = f' h_{t-1} + i' h~                     f' = f / (f + i), i' = i / (f + i)
 *   y = W_o h
 *
 * A GRU and an LSTM whose gates no longer read the state: each number of it decays by itself. In
 * log space the candidate is positive: h~ + 1/2 where it is, sigma(h~) where it is not (appendix
 * B). */
#include "variant.h"
#include "variants/model/sublayer.h"
#include "variants/parts/parts.h"
#include "variants/steps/mix.h"

#include <math.h>

extern const struct variant variant_minlstm;

struct numbers {
    bool log_space;
    bool three_gates; /* minLSTM */
};

static const struct choice choices[] = {
    {.name = "log_space",
     .codec = CODEC_FLAG,
     .at = offsetof(struct numbers, log_space),
     .most = 1,
     .absent = "1"},
    {.name = "minlstm",
     .codec = CODEC_FLAG,
     .at = offsetof(struct numbers, three_gates),
     .tensor = "attn.f.weight"},
    {0},
};

static void usual(const struct config *c, void *own)
{
    *(struct numbers *)own = (struct numbers){true, c->variant == &variant_minlstm};
}

static enum status check(const struct config *c, const void *own, struct err *e)
{
    (void)own;
    return c->kv_heads == c->H ? OK
                               : fail(e, E_USAGE, "%s: kv_heads %d  -> as many as heads",
                                      c->variant->name, c->kv_heads);
}

static const struct own own = {choices, OWN_SIZE(struct numbers), usual, check};

static const struct numbers *numbers_of(const struct steps *t)
{
    return config_own(t->c, SLOT_MIXER);
}

static double logistic(double x) { return 1 / (1 + exp(-x)); }
static double log_sigmoid(double x) { return -(fmax(-x, 0) + log1p(exp(-fabs(x)))); }

/* The gates of one number: z, and f where it has a gate of its own. */
enum { IN_Z, IN_H, IN_F };
enum { OUT_G, OUT_V };
enum { LOG_SPACE };

struct gates {
    double decay, write; /* log of what stays, and the share that is written */
};

static struct gates gates_of(double z, const float *f)
{
    if (!f)
        return (struct gates){log_sigmoid(-z), logistic(z)};
    const double of_f = log_sigmoid((double)*f), of_i = log_sigmoid(z);
    const double most = fmax(of_f, of_i), sum = most + log(exp(of_f - most) + exp(of_i - most));
    return (struct gates){of_f - sum, exp(of_i - sum)};
}

static double candidate(const struct step *s, double h)
{
    return !s->n[LOG_SPACE] ? h : h >= 0 ? h + 0.5 : logistic(h);
}

static void forward(const struct step_call *c)
{
    for (int i = 0; i < c->B * c->L; i++) {
        const float *const z = matrix_row(&c->in[IN_Z], i), *const h = matrix_row(&c->in[IN_H], i);
        const float *const f = c->in[IN_F].at ? matrix_row(&c->in[IN_F], i) : NULL;
        for (int e = 0; e < c->out->n; e++) {
            const struct gates of = gates_of((double)z[e], f ? f + e : NULL);
            matrix_row(&c->out[OUT_G], i)[e] = (float)of.decay;
            matrix_row(&c->out[OUT_V], i)[e] = (float)(of.write * candidate(c->s, (double)h[e]));
        }
    }
}

static void backward(const struct step_call *c)
{
    for (int i = 0; i < c->B * c->L; i++) {
        const float *const z = matrix_row(&c->in[IN_Z], i), *const h = matrix_row(&c->in[IN_H], i);
        const float *const f = c->in[IN_F].at ? matrix_row(&c->in[IN_F], i) : NULL;
        for (int e = 0; e < c->out->n; e++) {
            const struct gates of = gates_of((double)z[e], f ? f + e : NULL);
            const double d_g = (double)matrix_row(&c->d_out[OUT_G], i)[e];
            const double d_v = (double)matrix_row(&c->d_out[OUT_V], i)[e];
            const double x = (double)h[e], s = logistic(x), to = candidate(c->s, x);
            const double slope = !c->s->n[LOG_SPACE] || x >= 0 ? 1 : s * (1 - s);
            matrix_row(&c->d_in[IN_H], i)[e] += (float)(d_v * of.write * slope);
            if (!f) {
                const double gate = of.write; /* sigma(z) */
                matrix_row(&c->d_in[IN_Z], i)[e] +=
                    (float)(-d_g * gate + d_v * to * gate * (1 - gate));
                continue;
            }
            const double d = of.write * d_g - exp(of.decay) * of.write * d_v * to;
            matrix_row(&c->d_in[IN_F], i)[e] += (float)(d * logistic(-(double)f[e]));
            matrix_row(&c->d_in[IN_Z], i)[e] -= (float)(d * logistic(-(double)z[e]));
        }
    }
}

static void build(struct steps *t)
{
    static const struct step_kind kind = {
        .name = "gates", .forward = forward, .backward = backward};
    const int width = mix_values(t);
    const int z = step_affine(t, STEPS_INPUT, width, "z");
    const int h = step_affine(t, STEPS_INPUT, width, "h");
    const int f = numbers_of(t)->three_gates ? step_affine(t, STEPS_INPUT, width, "f") : NO_VALUE;
    struct step *const s = steps_add(t, &kind);
    struct recurrence r = mix_recurrence(t, (struct qkv){NO_VALUE, NO_VALUE, NO_VALUE});

    s->n[LOG_SPACE] = numbers_of(t)->log_space;
    step_reads(t, s, z);
    step_reads(t, s, h);
    step_reads(t, s, f);
    r.g = step_writes(t, s, width);
    r.v = step_writes(t, s, width);
    r.heads = width;
    r.dk = r.dv = 1;
    t->result = step_recur(t, r);
}

const struct mixer mixer_mingru = {
    .name = "mingru", .own = &own, .kind = &sublayer_steps, .build = build};

/* 4 D^2 weights: three maps as wide as 4/3 D, or four as wide as D. */
static void sizes(int D, int H, int *dh, int *F)
{
    (void)D, (void)H, (void)F;
    *dh = 1;
}

static int width_of_gru(int D, int H, int dh)
{
    (void)dh;
    return max_int(1, 4 * D / (3 * H));
}

static int width_of_lstm(int D, int H, int dh)
{
    (void)dh;
    return max_int(1, D / H);
}

const struct variant variant_mingru = {
    .name = "mingru",
    .paper = "Feng et al. 2024, arXiv:2410.01201",
    .about = "a GRU whose gates do not read the state",
    .pos = &pos_none,
    .mem = &mem_state,
    .ffn = &ffn_swiglu,
    .mixer = &mixer_mingru,
    .wiring = WIRING_PRE,
    .norm_kind = NORM_RMS,
    .bare_ffn = true,
    .sizes = sizes,
    .d_value = width_of_gru,
    .unscaled = true,
};

const struct variant variant_minlstm = {
    .name = "minlstm",
    .paper = "Feng et al. 2024, arXiv:2410.01201",
    .about = "an LSTM whose gates do not read the state",
    .pos = &pos_none,
    .mem = &mem_state,
    .ffn = &ffn_swiglu,
    .mixer = &mixer_mingru,
    .wiring = WIRING_PRE,
    .norm_kind = NORM_RMS,
    .bare_ffn = true,
    .sizes = sizes,
    .d_value = width_of_lstm,
    .unscaled = true,
};

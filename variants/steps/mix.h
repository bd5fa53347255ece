/* SPDX-License-Identifier: MIT
 *
 * What recurrent mixers share: their numbers, the projections before the recurrence with an
 * optional convolution, and the norm of heads and the output gate after it. */
#pragma once

#include "steps.h"

enum mix_norm { MIX_RMS, MIX_LAYER, MIX_UNNORMED };

/* Numbers of a mixer. Each uses some; the others are 0. */
struct mix {
    int conv_width;   /* taps; 0 = no convolution */
    int groups;       /* of heads that share q and k */
    int key_heads;    /* heads of q and k, in turn of several of v; 0 = as many */
    int delta_steps;  /* of the delta rule for each token, with a key and a value each */
    int lora;         /* rank of low-rank maps */
    int head_norm;    /* enum mix_norm */
    int norm_weights; /* a head's width, or one for each column */
    float gate_tau;   /* divides log decays */
    float gate_cap;   /* of gates before their exponential; 0 = none */
    float beta_max;   /* 2 allows negative eigenvalues */
    bool norm_whole;  /* one norm over all heads, or over each of so many groups of them */
    int norm_groups;
    bool norm_bias;
    int pairs; /* which columns of a head are rotated together: 0 = neighbours, 1 = halves */
    bool writes, rotates; /* by the delta rule; its keys */
    bool moves_first;     /* a layer alone moves its values towards the first layer's */
};

/* Fields of a variant whose layers have a recurrent mixer: norms first, SwiGLU without biases. */
#define MIX_LAYERS .pos = &pos_none, .mem = &mem_state, LLAMA_LAYERS

/* A mixer's own numbers: those that are usually others than mix_usual() gives. */
#define MIX_NUMBERS(...)                                                                           \
    {                                                                                              \
        mix_choices, PRESET(struct mix, __VA_ARGS__), mix_check, mix_usual                         \
    }
extern const struct choice mix_choices[];
enum status mix_check(const struct config *c, const void *numbers, struct err *e);
/* Where none are said: gate_tau, beta_max and delta_steps 1; weights of norms those of a head, or, of norms
 * of layers and of whole rows, all. No map of low rank is wider than the model. */
void mix_usual(const struct config *c, void *numbers);
const struct mix *mix_of(const struct steps *t);
/* Does the mixer of `c` norm the outputs of heads? */
bool mix_norms(const struct config *c);

/* Sizes of a variant whose keys are half as wide as its values, which keeps the projections at
 * about 4 D^2 weights; of values for any width of keys. */
void mix_sizes(int D, int H, int *dh, int *F);
int mix_d_value(int D, int H, int dh);
#define MIX_SIZES .sizes = mix_sizes, .d_value = mix_d_value

static inline int mix_keys(const struct steps *t) { return t->c->H * t->c->dh; }
static inline int mix_values(const struct steps *t) { return t->c->H * config_dv(t->c); }

/* How far the layer is through the model, from 0 for the first to 1 for the last: initial values of
 * some mixers go with it. */
static inline float mix_depth(const struct steps *t)
{
    return (float)t->layer / (float)max_int(1, t->c->N - 1);
}
/* What token shifts begin with: 1 - (c/D)^(p (1 - layer/N)) of the row before for channel c, p one
 * for each row of mixes. */
struct ramp mix_shifts(const struct steps *t, const float *p, int n);

/* q, k [H dk] and v [H dv] of the input, k and v `delta_steps` times as wide; with a convolution of
 * all three behind it if conv_width is given, with `silu` in any case. */
struct qkv {
    int q, k, v;
};
struct qkv mix_qkv(struct steps *t, bool silu);

/* A recurrence of the model's sizes over these, with no further term yet. */
struct recurrence mix_recurrence(const struct steps *t, struct qkv x);

/* Those of delta rules: q and k have unit length. */
struct qkv mix_unit(struct steps *t);

/* A recurrence over these, with beta from "beta.weight". */
struct recurrence mix_delta(struct steps *t);

/* Linear attention: q, k and v as attention's, whose heads of q may share one of k, features of q
 * and k (parts/features.h), outputs divided by the sums of their products. */
void mix_linear(struct steps *t);

/* Head norm and output gate of a recurrence's output; it becomes the result. */
int mix_normed(struct steps *t, int o);
void mix_output(struct steps *t, int o);

/* SPDX-License-Identifier: MIT
 *
 * Feature maps of queries and keys whose products replace attention's exponentials, for rows of
 * heads x [rows,dh]:
 *
 *   TAYLOR 1, x'_a, x'_a x'_b for b < a, x'_a^2 / sqrt(2)       m = (dh + 1) (dh + 2) / 2
 *   ELU    x + 1 where x > 0, else e^x                                            m = dh
 *   EXP    exp(w_r . x' - |x'|^2 / 2) / sqrt(m),  x' = x dh^(-1/4)                m = features
 *   COSH   exp(w_r . x' - |x'|^2 / 2), exp(-w_r . x' - |x'|^2 / 2), over sqrt(m)  m = 2 features
 *   TRIG   exp(|x'|^2 / 2) / sqrt(features) [sin(w_r . x'), cos(w_r . x')]        m = 2 features
 *   RELU   max(0, w_r . x') / sqrt(m) + feature_eps                               m = features
 *
 * with random directions w_r [dh], drawn once and never trained. A factor common to all features of
 * a query, or of all keys, cancels in the output: of EXP and COSH, queries are scaled so that their
 * largest feature is 1, and keys by a further e^-40 if the longest direction could make them
 * overflow. TRIG has features of both signs: nothing keeps the divisors from 0, which is why the
 * others exist. RELU does not estimate a softmax. */
#pragma once

#include "variants/variant.h"

/* The own numbers of a mixer that has features. */
struct linear {
    int features; /* random ones */
    float eps;    /* of divisors (struct recur) */
    float least;  /* what each feature of RELU begins with */
    bool apart;   /* each head has directions of its own */
};
extern const struct part_numbers linear_numbers;
/* A mixer of sums over such features: it says which, besides its name. */
#define LINEAR_MIXER                                                                               \
    .numbers = &linear_numbers, .kind = &sublayer_sums, .unscaled = true, .build = mix_linear
static inline const struct linear *linear_of(const struct config *c)
{
    return config_numbers(c, SLOT_MIXER);
}

/* Random directions of a model. */
struct directions {
    const float *w; /* [features,dh], or so of each head; NULL if the map has none */
    float top;      /* before scaling, no feature of a key exceeds exp(top) */
};

int features_count(const struct config *c); /* m */
/* Floats of the directions; 0 if the map has none. */
size_t features_floats(const struct config *c);
/* The same numbers w for every model of these sizes: blocks of dh orthogonal directions, with the
 * lengths of Gaussian vectors (Choromanski et al. 2021, section 3.3). */
void features_draw(const struct config *c, float *w);
float features_top(const struct config *c, const float *w);

/* f [rows,m] of x [rows,dh]. */
void features_forward(const struct engine *g, const struct config *c, const struct directions *of,
                      float *f, const float *x, int rows, bool query);
/* d_x from d_f, which is overwritten; x and f as in forward. */
void features_backward(const struct engine *g, const struct config *c, const struct directions *of,
                       float *d_x, float *d_f, const float *f, const float *x, int rows);

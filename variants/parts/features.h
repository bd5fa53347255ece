/* SPDX-License-Identifier: MIT
 *
 * Features of queries and keys whose products stand for attention's exponentials (struct
 * linear_attn), made of rows of heads x [rows,dh]:
 *
 *   ELU    x + 1 where x > 0, else e^x                                            m = dh
 *   EXP    exp(w_r . x' - |x'|^2 / 2) / sqrt(m),  x' = x dh^(-1/4)                m = features
 *   COSH   exp(w_r . x' - |x'|^2 / 2), exp(-w_r . x' - |x'|^2 / 2), over sqrt(m)  m = 2 features
 *
 * with random directions w_r [dh], drawn once and never trained. A factor common to all features of
 * a query, or to all keys, cancels in the output: queries are scaled so that their largest is 1,
 * and keys by e^-40 more than that where the longest direction could make them overflow. */
#ifndef FEATURES_H
#define FEATURES_H

#include "variants/variant.h"

/* Directions of a model. */
struct directions {
    float *w;  /* [features,dh]; NULL where the map has none */
    float top; /* no feature of a key without its factor exceeds exp(top) */
};

int features_count(const struct config *c); /* m */
/* Floats of the directions; 0 where the map has none. */
size_t features_floats(const struct config *c);
/* The same numbers for every model of these sizes: blocks of dh orthogonal directions, with the
 * lengths of Gaussian vectors (Choromanski et al. 2021, section 3.3). */
void features_draw(const struct config *c, struct directions *of);
/* Once the directions have other values. */
void features_settle(const struct config *c, struct directions *of);

/* f [rows,m] of x [rows,dh]. */
void features_forward(const struct engine *g, const struct config *c, const struct directions *of,
                      float *f, const float *x, int rows, bool query);
/* d_x from d_f, which is used up; x and f as forward had and left them. */
void features_backward(const struct engine *g, const struct config *c, const struct directions *of,
                       float *d_x, float *d_f, const float *f, const float *x, int rows);

/* FLOP of rows of heads: products only. */
double features_flop(const struct config *c, double rows);

#endif

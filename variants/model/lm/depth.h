/* SPDX-License-Identifier: MIT
 *
 * Models that run their layers several times with the same weights: sinusoids of position and step
 * are added before each run, and each position halts by itself. */
#pragma once

#include "drive.h"

struct depth {
    const struct config *c;
    struct sublayers *sublayers;
    const struct param *halt; /* weight [1,D] and bias [1]; NULL = nothing halts */
    struct extent max;
    bool kept;           /* backward follows: every step keeps its state */
    float *pos_encoding; /* sinusoids of positions from 0 */
    float *h;            /* [B,L,D] the state; kept: [steps+1,B,L,D] */
    float *y;            /* [B,L,D] after the layers */
    double *p, *w;       /* [steps,B*L] halting probability of each step, weight of its state */
    double *sum;         /* [B*L] sum of p over the steps after which a position continued */
    double *remainder;   /* [B*L] remainder: weight of the last step where it completes 1, else 0 */
    int32_t *steps;      /* [B*L] steps that each position took */
    int rows, ran;       /* in the last forward: B*L, and steps until all had halted */
    double ponder;       /* mean of steps + rest */
    /* Training only. */
    double *coef, *slope; /* [steps,B*L] gradient of the output by each state, of the loss by each
                           * logit */
    float *d, *d_h;       /* [B,L,D] gradients: before or after the layers, of the state */
};

/* Share of all steps of all positions that the last forward took; 1 before the first. */
double depth_share(const struct depth *d);

/* ---- for its parts -------------------------------------------------------------------------- */

/* depth_backward adds the gradient of ponder_tau times ponder. */
enum status depth_bind_grad(struct lm *m, const struct engine *g, struct arena *a, struct err *e);
void depth_backward(struct lm *m, const struct engine *g, const int32_t *target, int B, int L);
float *depth_state(const struct depth *d, int t); /* before step t, from 0 */
static inline int depth_at_once(const struct depth *d) { return d->sublayers->once; }

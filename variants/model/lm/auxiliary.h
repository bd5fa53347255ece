/* SPDX-License-Identifier: MIT
 *
 * Losses of training only (Al-Rfou et al. 2018, "Character-Level Language Modeling with Deeper
 * Self-Attention", arXiv:1808.04444, section 3): classifiers W_lk of their own, which a trained model
 * does without.
 *
 *   intermediate layers   layer l of N predicts the next token, too, with the weight of the output,
 *                         until l/2N of the training is over
 *   further targets       each state that predicts also predicts the k-th token after the next one,
 *                         with aux_weight (0.5) of its layer's
 *
 *   loss = nll + sum over l, k: weight_lk mean over t of -log softmax(W_lk N(h^l_t))[token t+1+k]
 *
 * N is the norm before the output, if there is one. Tokens beyond the segment are no targets. */
#pragma once

#include "drive.h"

struct auxiliary {
    /* All but the loss are for training only. */
    float *states; /* [N,B,L,D] after each layer, before the next one adds positions; or the last */
    float *normed, *d;    /* [B,L,D] rows of a layer, and their gradient */
    float *rows, *d_rows; /* [B,L,D] those with a further target, without gaps */
    float *logits, *nll;  /* [B*L,V] [B*L] */
    int32_t *targets;     /* [B*L] */
    double loss;          /* of the last backward, without the nll of the output */
};

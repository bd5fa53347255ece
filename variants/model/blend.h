/* SPDX-License-Identifier: MIT
 *
 * Transparent attention in a decoder (Bapna et al. 2018, "Training Deeper Neural Machine
 * Translation Models with Transparent Attention", arXiv:1808.07561): what the output reads is a
 * trained sum of the states after all layers, instead of the last of them:
 *
 *   h = sum over l = 0..N: softmax(w)_l h^l          h^0 is the input of the first layer
 *
 * The paper gives each layer of a decoder such a sum of the encoder's states. */
#ifndef BLEND_H
#define BLEND_H

#include "variants/model/sublayer/sublayer_list.h"

struct blend {
    struct sublayers *sublayers;
    const struct param *weight; /* [N+1] */
    int N;
    float *share; /* [N+1] softmax of the weights */
    float *h;     /* [B,L,D] the stream; kept: after the last layer */
    /* Training only. */
    float *d, *d_share; /* [B,L,D] gradient of the sum; [N+1] */
};

/* Declare the weights. Returns their index, -1 = none. */
int blend_params(const struct config *c, struct params *p);
/* Count or place; `sublayers` must be bound. _grad: additionally for training. */
void blend_bind(struct blend *t, const struct config *c, struct sublayers *sublayers,
                const struct params *p, int at, struct arena *a);
void blend_bind_grad(struct blend *t, struct arena *a);

/* Where forward expects its input. */
float *blend_input(const struct blend *t);
/* out [B,L,D] from the input. Backward: d_out becomes the gradient of the input, in place. */
void blend_forward(struct blend *t, const struct engine *g, float *out, int B, int L);
void blend_backward(struct blend *t, const struct engine *g, float *d_out, int B, int L);

double blend_flop(const struct blend *t, int B, int L);

#endif

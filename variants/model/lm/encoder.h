/* SPDX-License-Identifier: MIT
 *
 * An encoder in front of a language model, which becomes its decoder (Vaswani et al. 2017,
 * "Attention Is All You Need", arXiv:1706.03762): layers that see a whole source text, and cross
 * attention in every layer of the decoder, after its attention, to what they left:
 *
 *   e^0       = the embedding of the source, by the decoder's words
 *   e^l       = layer_l(e^(l-1)), attention in both directions
 *   context_j = N(e^last); transparent (Bapna et al. 2018, arXiv:1808.07561):
 *               N(sum over l = 0..N_e: softmax(w_j)_l e^l)
 *   h^j       = decoder_j(h^(j-1), context_j)
 *
 * N is a norm of its own if the decoder has one at its end, else nothing. Layers and positions are
 * those of the variant, with weights of their own; cross attention is softmax attention with the
 * variant's heads, without positions. */
#pragma once

#include "drive.h"

struct encoder {
    struct config c; /* of its layers */
    struct sublayers layers;
    int at_norm, at_blend; /* -1 = none */
    int S;                 /* rows of the source */
    float *states;         /* [N_e+1,B,S,D] if transparent, else [B,S,D] of the last layer */
    float *share;          /* [N_d,N_e+1] */
    float *sums;           /* [N_d,B,S,D] if transparent */
    float *context;        /* as sums, or as states, behind the norm; NULL = they have none */
    /* Training only. */
    float *d_context, *d; /* as contexts; [B,S,D] */
};

/* Those of the encoder; NULL = the model has none. */
const struct sublayers *encoder_layers(const struct lm *m);

/* SPDX-License-Identifier: MIT
 *
 * Encoder and decoder (Vaswani et al. 2017; BART, Lewis et al. 2019, arXiv:1910.13461): layers that
 * see a whole source text, and causal layers that attend to themselves and to what the encoder
 * left. Norms come after sums, the embedding is that of both texts and of the output:
 *
 *   e^l       = layer_l(e^(l-1)) over the rows of the source that count
 *   h^j       = decoder_j(h^(j-1), context_j)
 *   logits    = h^N E^T + b
 *   context_j = e^last; transparent (Bapna et al. 2018, arXiv:1808.07561):
 *               sum over l = 0..N_e: softmax(w_j)_l e^l */
#ifndef SEQ2SEQ_H
#define SEQ2SEQ_H

#include "variants/base/safetensors.h"
#include "variants/model/sublayer/sublayer_list.h"

struct seq2seq {
    struct config enc, dec;
    bool transparent;
    struct params params;
    int at_blend; /* -1 = none */
    struct sublayers encoder, decoder;
    int B, S, L;                       /* sequences, rows of the source, of the text */
    const int32_t *seen;               /* [B] rows of the source that count */
    float *states;                     /* [N_e+1,B,S,D] of the encoder */
    float *share;                      /* [N_d,N_e+1] */
    float *context;                    /* [N_d,B,S,D], or the last state */
    float *h, *logits;                 /* [B,L,D] [B*L,V] */
    float *codes_s, *codes_l;          /* encodings of positions; NULL = none */
    float *d_context, *d_states, *d_h; /* training only: as contexts, [B,S,D], [B,L,D] */
};

/* Read a file's metadata: the layers' config, the number of the decoder's, the contexts' form. */
enum status seq2seq_config(const struct safetensors *s, struct config *c, int *dec_layers,
                           bool *transparent, struct err *e);
/* A model of `c`, whose layers are the encoder's, with so many layers in the decoder. */
enum status seq2seq_init(struct seq2seq *t, const struct config *c, int dec_layers,
                         bool transparent, struct err *e);
/* Count or place for texts of this size. */
enum status seq2seq_bind(struct seq2seq *t, const struct engine *g, bool backward, struct arena *a,
                         struct err *e);
void seq2seq_free(struct seq2seq *t);

/* From src [B,S] and tokens [B,L] to t->logits and nll [B*L]. */
void seq2seq_forward(struct seq2seq *t, const struct engine *g, const int32_t *src,
                     const int32_t *tokens, const int32_t *target, float *nll);
/* After it: adds the gradient of the mean nll to every parameter's; t->logits is used up. */
void seq2seq_backward(struct seq2seq *t, const struct engine *g, const int32_t *src,
                      const int32_t *tokens, const int32_t *target);
/* [B,S,D] what the encoder left. */
const float *seq2seq_top(const struct seq2seq *t);

#endif

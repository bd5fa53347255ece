/* SPDX-License-Identifier: MIT
 *
 * Funnel-Transformer (Dai et al. 2020, "Funnel-Transformer: Filtering out Sequential Redundancy for
 * Efficient Language Processing", arXiv:2006.03236) as a network of its own: rows [B,T,D] to rows
 * of the same shape. Block b works on cells of 2^b tokens; the first layer of a block asks from
 * cells that are the means of two and reads the rows that were not pooled; behind the last block
 * cells are copied to their tokens, added to what block 0 gave and sent through the decoder's
 * layers.
 *
 *   y = norm(h + attn(pool(h); h))      z = norm(y + ffn(y))
 *
 * Distances count tokens. As published a cell stands at its first token and sees both ways. The
 * causal form is not published: a cell is known with its last token, stands there, and reaches only
 * the tokens from there on, so that what follows a token does not change its row. Golden files
 * check this network; the sub-layers of a language model that do the same, sublayer_pool.c, are
 * compared with it. */
#ifndef FUNNEL_NET_H
#define FUNNEL_NET_H

#include "variants/variant.h"

enum { FUNNEL_BLOCKS = 8, FUNNEL_LAYERS = 64 };

struct funnel_layer {
    int first;          /* the first of its parameters */
    int Lq, Lk, sq, sk; /* rows asking and asked, tokens from one to the next */
    struct attn a;      /* lowered; operands in place */
    const struct attn_impl *impl;
    int rows_rel;              /* rows of its table of distances */
    float *pos_encoding, *rel; /* [rows_rel,D] [H,rows_rel,dh] */
    float *q_in, *kv_in;       /* [B,Lq,D] [B,Lk,D]; the same where nothing is pooled */
    float *q, *k, *v, *o, *lse;
    float *sum1, *y, *ffn, *sum2;
    float *out; /* [B,Lq,D] */
};

struct funnel {
    struct config c; /* D, H, dh, F, scale, causal, ln_eps, ffn; the rest is not read */
    int blocks, layers[FUNNEL_BLOCKS], dec_layers;
    struct params params;
    int B, T, n; /* n layers, the decoder's last */
    struct funnel_layer at[FUNNEL_LAYERS];
    float *x;                            /* [B,T,D] the input, the caller's to fill */
    float *top;                          /* [B,T_top,D] what the last block gave */
    float *joined;                       /* [B,T,D] what the decoder is given, and is the output
                                          * where it has no layers */
    float *d[2], *d_q, *d_k, *d_v, *d_o; /* gradients */
    float *d_first, *d_rel, *more, *stats;
    void *scratch;
};

/* List the parameters: "enc.B.L.*" and "dec.L.*". E_USAGE where sizes make no sense. */
enum status funnel_init(struct funnel *f, const struct config *c, const int *layers, int blocks,
                        int dec_layers, struct err *e);
/* Count or place everything for B sequences of T tokens, backward included. */
enum status funnel_bind(struct funnel *f, const struct engine *g, int B, int T, struct arena *a,
                        struct err *e);
/* Tables of distances, once the weights have their values and when they change. */
void funnel_build_tables(struct funnel *f, const struct engine *g);
/* From f->x to the result [B,T,D]. */
const float *funnel_forward(struct funnel *f, const struct engine *g);
/* From d_y [B,T,D] to the gradient of x, which is returned; adds to those of the weights. */
const float *funnel_backward(struct funnel *f, const struct engine *g, const float *d_y);
int funnel_cells(const struct funnel *f); /* rows of a sequence at the top */
void funnel_free(struct funnel *f);

#endif

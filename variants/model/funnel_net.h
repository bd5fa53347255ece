/* SPDX-License-Identifier: MIT
 *
 * Funnel-Transformer (Dai et al. 2020, "Funnel-Transformer: Filtering out Sequential Redundancy for
 * Efficient Language Processing", arXiv:2006.03236) as a separate network: rows [B,T,D] to rows of
 * the same shape. Block b works on pool groups of 2^b tokens. In the first layer of a block queries
 * are means of two rows, keys and values the rows before pooling. After the last block the groups
 * are copied to their tokens, added to the output of block 0 and passed through the decoder's
 * layers.
 *
 *   y = norm(h + attn(pool(h); h))      z = norm(y + ffn(y))
 *
 * Distances count tokens. As published, a group is placed at its first token and attention is
 * bidirectional. The causal form is not published: a group is complete with its last token, is
 * placed there, and is read only by tokens from there on, so that a token's row does not depend on
 * later ones. Golden files check this network; the equivalent sub-layers of a language model,
 * sublayer_pool.c, are compared with it. */
#ifndef FUNNEL_NET_H
#define FUNNEL_NET_H

#include "variants/variant.h"

enum { FUNNEL_BLOCKS = 8, FUNNEL_LAYERS = 64 };

struct funnel_layer {
    int first;          /* first of its parameters */
    int Lq, Lk, sq, sk; /* query and key rows, tokens between rows of each */
    struct attn a;      /* tables built; operands in place */
    const struct attn_impl *impl;
    int rows_rel;              /* rows of its table of distances */
    float *pos_encoding, *rel; /* [rows_rel,D] [H,rows_rel,dh] */
    float *q_in, *kv_in;       /* [B,Lq,D] [B,Lk,D]; the same if nothing is pooled */
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
    float *x;                            /* [B,T,D] input, filled by the caller */
    float *top;                          /* [B,T_top,D] output of the last block */
    float *joined;                       /* [B,T,D] decoder input; also the output if it has no
                                          * layers */
    float *d[2], *d_q, *d_k, *d_v, *d_o; /* gradients */
    float *d_first, *d_rel, *grad_work, *stats;
    void *scratch;
};

/* List the parameters: "enc.B.L.*" and "dec.L.*". E_USAGE if sizes make no sense. */
enum status funnel_init(struct funnel *f, const struct config *c, const int *layers, int blocks,
                        int dec_layers, struct err *e);
/* Count or place everything for B sequences of T tokens, backward included. */
enum status funnel_bind(struct funnel *f, const struct engine *g, int B, int T, struct arena *a,
                        struct err *e);
/* Tables of distances; call once the weights have values and when they change. */
void funnel_build_tables(struct funnel *f, const struct engine *g);
/* From f->x to the result [B,T,D]. */
const float *funnel_forward(struct funnel *f, const struct engine *g);
/* From d_y [B,T,D] to the gradient of x, which is returned; accumulates weight gradients. */
const float *funnel_backward(struct funnel *f, const struct engine *g, const float *d_y);
int funnel_groups(const struct funnel *f); /* rows of a sequence in the last block */
void funnel_free(struct funnel *f);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Collaborative heads as a kind of sub-layer: weights, arrays and calls of the core, for its two
 * directions. */
#ifndef SUBLAYER_COLLAB_H
#define SUBLAYER_COLLAB_H

#include "sublayer_attention.h"
#include "variants/parts/collab.h"

/* Parameters in the order they are added; the last may be missing, then the biases of the first
 * four follow with attn_bias. */
enum collab_param { CO_W_Q, CO_W_K, CO_W_V, CO_W_O, CO_W_MIX, CO_W_CONTENT };

/* Arrays; K are memory and new rows:
 *   queries      [B,L,Dk] as projected, [B,L,H,Dk] weighted
 *   keys, values [B,K,Dk] [B,K,H,dv], with MEM_KV in the caches
 *   content      [B,K,H] of rows, with MEM_KV of new ones; [B,H,K] added to scores
 *   outputs      [B,L,H,dv], and for backward log-sum-exp [B,H,L]
 * Those of gradients have the same shapes. Backward only: the keys of one sequence for each head
 * [H,K,Dk], and their gradients. */
enum { CO_Q_LOW, CO_Q, CO_K, CO_V, CO_CONTENT, CO_ADD, CO_O, CO_LSE, CO_KEYS, CO_KEYS_GRAD };

const struct param *collab_param(const struct sublayer *s, enum collab_param which);
const struct param *collab_bias(const struct sublayer *s, enum collab_param which); /* or NULL */

/* The core of sequence b, as the last forward left it: its heads are the sequences of a call, and
 * all have the same keys. */
struct attn collab_core(const struct sublayer *s, const struct work *w, int L, int b);

/* Backward, sublayer_collab_grad.c. */
void collab_backward(const struct engine *g, struct sublayer *s, const struct work *w,
                     struct sublayer_input from, float *d_in, const float *d_y, int skip);

#endif

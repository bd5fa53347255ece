/* SPDX-License-Identifier: MIT
 *
 * Feedback Transformer (Fan et al. 2020, "Addressing Some Limitations of Transformers with Feedback
 * Memory", arXiv:2002.09402): one memory of the whole model, in which a row stands for all layers
 * of a past token, and which all layers attend to. Token after token, for layers l = 1..N:
 *
 *   x^0 = embedding
 *   z   = attention(q from x^(l-1); keys and values from m_(t-1), m_(t-2), ..)
 *   x^l = the rest of layer l, which z enters
 *   m_t = sum over l = 0..N: softmax(w)_l x^l_t
 *
 * The own step is not visible; where nothing is remembered z is 0. Norms that come first also apply
 * to m: those of the first layer where all layers share keys and values. L tokens are L runs of the
 * layers, in training too. Backward keeps the embeddings and the memory only and runs each step
 * again; rows of earlier segments are constants. */
#pragma once

#include "drive.h"

struct feedback {
    const struct config *c;
    struct sublayers *sublayers; /* of one token a sequence */
    const struct param *weight;  /* [N+1], then W_k and W_v where all layers share them */
    enum mem_kind mem;
    struct extent max;
    int reach;            /* rows of a sequence in `rows`: memory, unless cached, and new */
    int past;             /* rows before the segment of the last forward */
    float *in, *h;        /* [B,L,D] embeddings; [B,D] the stream of a step */
    float *share;         /* [N+1] softmax of the weights */
    float *rows, *normed; /* [B,M+L,D] memory and new rows, as they are and as keys read them */
    float *mixed;         /* [B,D] of a step */
    struct cache *keys, *values; /* [1 or N] */
    /* Training only. */
    float *d_keys, *d_values;    /* [1 or N][B,M+L,Hkv dh] */
    float *d, *d_mixed, *d_rows; /* [B,D], [B,D], [B,M+L,D] */
    float *stats;
    double *d_share; /* [N+1] */
};

/* ---- for its parts -------------------------------------------------------------------------- */

/* Keys and values: how many there are, and which a layer reads; their weights and the norm before
 * them, NULL = none. */
int feedback_stores(const struct config *c);
static inline int feedback_store(const struct config *c, int layer)
{
    return c->feedback.shared ? 0 : layer;
}
const struct param *feedback_weight(const struct feedback *t, int store, bool values);
const struct param *feedback_norm(const struct feedback *t, int store);

enum status feedback_bind_grad(struct lm *m, const struct engine *g, struct arena *a,
                               struct err *e);
void feedback_backward(struct lm *m, const struct engine *g, const int32_t *target, int B, int L);

/* One step of the segment: all layers on x [B,D] of in; the states are sublayers' or follow in h.
 */
float *feedback_state(const struct feedback *t, int l);
/* Row `step` of `all` [B,L,D] to `one` [B,D], or back. */
void feedback_step(const struct feedback *t, float *one, float *all, int step, int B, int L,
                   bool back);
void feedback_run(struct feedback *t, const struct engine *g, int step, int B, int L, bool again);

/* Rows x [B,n,D] become memory, as if they were mixtures of past tokens. */
void feedback_remember(struct feedback *t, const struct engine *g, const float *x, int B, int n);
void feedback_commit(struct feedback *t, int L);
void feedback_forget(struct feedback *t);

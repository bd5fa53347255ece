/* SPDX-License-Identifier: MIT
 *
 * Cross attention (Vaswani et al. 2017, section 3.2.3): queries from rows x [B,L,D], keys and
 * values from those of another sequence, the context [B,S,ctx_width]. The two have no order in
 * common:
 *
 *   y = W_o softmax(scale (W_q x) (W_k ctx)^T) (W_v ctx)
 *
 * Without norm and residual sum. Keys and values are projected once for a context and can then
 * serve many calls. */
#pragma once

#include "variants/model/sublayer/sublayer_project.h"

/* config, sizes, weights and `seen` are the caller's; the rest is bound. */
struct cross {
    const struct config *c;
    int B, L, S, ctx_width;
    const struct param *weights; /* ATTN_Q .. ATTN_O, then their biases, if any */
    const int32_t *seen;         /* [B] rows of each context that count, at least 1; NULL = all */
    const struct attn_impl *impl;
    float *q, *k, *v, *o; /* [B,L,H,dh] [B,S,Hkv,dh] [B,S,Hkv,dh] [B,L,H,dh] */
    float *lse;           /* [B,H,L]; with a backward pass */
    void *scratch, *d_scratch;
    float *d_q, *d_k, *d_v, *d_o;
};

void cross_params(const struct config *c, int ctx_width, const char *prefix, struct params *p);

/* Count or place: what forward works in, keys and values as `kv`; for a backward pass, too. */
enum status cross_bind(struct cross *t, const struct engine *g, enum part kv, bool backward,
                       struct arena *a, struct err *e);

/* Keys and values of a context; then y [B,L,D] from x. */
void cross_context(const struct engine *g, const struct cross *t, const float *ctx);
void cross_forward(const struct engine *g, const struct cross *t, float *y, const float *x);

/* After both: gradients of x and of the context from that of y; accumulates weight gradients. */
void cross_backward(const struct engine *g, const struct cross *t, float *d_x, float *d_ctx,
                    const float *d_y, const float *x, const float *ctx);

/* The attention over the whole context, with which to choose an implementation; the calls of the
 * core that a forward pass makes: one, or one for each sequence if their lengths differ. */
struct attn cross_attn(const struct cross *t);
int cross_calls(const struct cross *t);
struct attn cross_call(const struct cross *t, int i);

/* Useful FLOP: of the context, and of a call. */
double cross_context_flop(const struct cross *t);
double cross_flop(const struct cross *t);
double cross_grad_flop(const struct cross *t);

/* SPDX-License-Identifier: MIT
 *
 * What the parts of composed attention's backward share. */
#pragma once

#include "composed.h"
#include "variants/backends/attn_sums.h"

/* Per thread: the forward's space and the gradients, as many matrices as the team has heads. Where
 * heads do not mix, d_w and d_p are the same. space.g is used for sums of P, then of G. */
struct grad_space {
    struct space forward;
    float *d_w; /* of the weights of the values; finally of the scores before mixing */
    float *d_p; /* of probabilities, then of the scores after mixing */
};

/* A call. */
struct grad_call {
    const struct engine *g;
    const struct attn *a;
    const struct attn_grad *d;
    const struct attn_sums *sums;
    float *all; /* sums of every (sequence, head) */
};
static inline float *composed_sum(const struct grad_call *c, const struct block_at *at,
                                  enum attn_sum which)
{
    return c->all + (size_t)(at->b * c->a->H + at->h) * c->sums->each + c->sums->at[which];
}

/* The sinks' part of d_w, and d_sink_v, from one head's weights. */
void composed_sink_values(const struct grad_call *c, const struct block_at *at, const float *w,
                          float *d_w);

/* d_sink_k, and the sinks' contribution to d_q, from the gradients of the scores. */
void composed_sink_keys(const struct grad_call *c, const struct block_at *at, const float *d,
                        float *work);

/* From d_w to the gradients of the scores before mixing, again in d_w, for the whole team; includes
 * d_scores_out and d_add. */
void composed_all_scores_grad(const struct grad_call *c, const struct block_at *at,
                              const struct grad_space *sp);

/* d_rel_q, and its contribution to d_k. */
void composed_rel_q_grad(const struct grad_call *c, const struct block_at *at, const float *d,
                         float *work);

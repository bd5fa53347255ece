/* SPDX-License-Identifier: MIT
 *
 * The loss of an actor-critic (A2C: Mnih et al. 2016, arXiv:1602.01783) with generalised advantages
 * (Schulman et al. 2016, arXiv:1506.02438). A row of outputs [V] has the logits of the A actions
 * first and the value behind them; the rest is unused.
 *
 *   d_t = r_t + gamma v_{t+1} - v_t,   a_t = d_t + gamma lambda a_{t+1},   g_t = a_t + v_t
 *   loss = mean of  - a_t log p(action_t) + value_coef (g_t - v_t)^2 / 2 - entropy_coef H(p)
 *
 * a_t and g_t are constants of the gradient. */
#pragma once

#include "variants/base/base.h"

struct actor_critic {
    int B, L, A, V;
    double discount, lambda; /* gamma, lambda */
    double value_coef, entropy_coef;
    const float *out;       /* [B,L,V] */
    const int32_t *actions; /* [B,L] */
    const float *rewards;   /* [B,L] */
    const float *after;     /* [B] v_L: of what follows, 0 at the end of an episode */
    float *advantages;      /* [B,L] out: a_t */
    float *targets;         /* [B,L] out: g_t */
};

struct actor_critic_loss {
    double policy, value, entropy; /* means of - a log p, of (g - v)^2 / 2, of H */
    double loss;
};

/* Advantages and targets from rewards and values. */
void actor_critic_advantages(const struct actor_critic *x);
/* The loss; d_out [B,L,V] is its gradient (0 for what is unused). */
struct actor_critic_loss actor_critic_grad(const struct actor_critic *x, float *d_out);

/* The action that the uniform number u in (0,1) draws from logits [A]. */
int actor_critic_draw(const float *logits, int A, double u);

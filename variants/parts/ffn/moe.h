/* SPDX-License-Identifier: MIT
 *
 * What the files of mixtures of experts share: their numbers, the layout of their weights and work
 * space, routing, and one expert. */
#pragma once

#include "variants/variant.h"

enum { MOE_EXPERTS = 1 << 12 }; /* at most */

/* Their own numbers in a config. */
struct moe {
    int experts, k, capacity; /* E, those of a row, rows of one (0 = any number) */
    float aux_coef;           /* weight of the auxiliary loss */
    int groups;               /* of experts, each of which serves a row: ffn_proto */
    int act;                  /* of hidden units: moe_act, moe_gated */
    float beta, limit;        /* of clamped units, struct glu */
    bool router_bias;
    int norm;                       /* enum moe_norm */
    float scale;                    /* of gates */
    int route_groups, route_within; /* a row chooses within so many groups of experts */
    int shared;                     /* width of an expert that serves every row; 0 = none */
    bool shared_gate;               /* its output is multiplied by a logistic */
};
/* Are gates divided by their sum? If there are several, always, never. */
enum moe_norm { MOE_NORM_SEVERAL, MOE_NORM_ALWAYS, MOE_NORM_NEVER };
static inline const struct moe *moe_of(const struct config *c)
{
    return config_numbers(c, SLOT_FFN);
}

enum act_kind moe_act(const struct config *c);
bool moe_gated(const struct config *c); /* hidden units are f(W_g x) (.) (W_1 x) */
bool moe_clamps(const struct config *c);
bool moe_norms(const struct config *c);
/* How rows choose: the best of all experts, the best of each group, by their token. */
bool moe_in_groups(const struct config *c);
bool moe_by_token(const struct config *c);
/* Experts of a row. */
int moe_k(const struct config *c);
/* Groups over which the router's probabilities sum to 1. */
int moe_groups(const struct config *c);

/* Weights; those that a model does not have are NULL. Experts: one tensor for all. */
struct moe_expert_weights {
    const struct param *wg, *bg, *w1, *b1, *w2, *b2;
};
struct moe_weights {
    const struct param *router, *router_bias, *table, *shared_gate;
    struct moe_expert_weights all, shared;
};
void moe_params(const struct config *c, const char *prefix, struct params *p);
struct moe_weights moe_weights_of(const struct config *c, const struct param *w);

/* One expert and its n rows. */
struct moe_expert {
    struct param wg, bg, w1, b1, w2, b2;
    bool gated, bias;
    int n, F;
    const float *in; /* [n,D] */
    float *hidden,
        *pre;   /* [n,F]; [n,F] of W_1 or, gated, of W_g and then of W_1; pre may be NULL */
    float *out; /* [n,D] */
};
size_t moe_pre_units(const struct config *c); /* floats of `pre` for each hidden unit */
/* Its hidden units; its output from them. */
void moe_expert_hidden(const struct engine *g, const struct config *c, const struct moe_expert *x);
void moe_expert_output(const struct engine *g, const struct moe_expert *x);
/* d_in [n,D] from the gradients d_out [n,D] and d_hidden [n,F], which is overwritten; d_in may be
 * d_out. d_pre [n,2F] is work space of gated units. Accumulates weight gradients. */
void moe_expert_grad(const struct engine *g, const struct config *c, const struct moe_expert *x,
                     float *d_in, const float *d_out, float *d_hidden, float *d_pre);

/* A place is a served choice; places are sorted by expert. */
struct moe_work {
    float *p;        /* [rows,E] the router's probabilities, unless tokens choose */
    float *gate;     /* [rows,k] */
    int32_t *choice; /* [rows,k] expert, best first */
    int32_t *route;  /* [rows,k] the same, -1 if the expert was full */
    int32_t *place;  /* [rows,k] -1 if the expert was full */
    int32_t *first;  /* [E+1] first place of each expert */
    float *in;       /* [places,D] */
    float *hidden;   /* [places,F] */
    float *pre;      /* of each expert's places, see struct moe_expert; NULL with ReLU alone */
    float *out;      /* [places,D] */
    /* of the shared expert */
    float *shared_hidden, *shared_pre, *shared_out; /* [rows,Fs], [rows,Fs] or twice, [rows,D] */
    float *shared_gate;                             /* [rows] */
};
size_t moe_work_floats(const struct config *c, int rows);
/* The work space that forward left, located again. */
struct moe_work moe_work_of(const struct config *c, int rows, const float *work);

/* Maximum number of places. */
size_t moe_most_places(const struct config *c, int rows);

/* From p to gate, choice, route, place and first; by tokens, gate and choice are given. */
void moe_assign(const struct config *c, const struct moe_work *w, int rows);

/* The share of the rows whose first choice is expert e. */
double moe_share(const struct config *c, const struct moe_work *w, int rows, int e);
double moe_aux(const struct config *c, int rows, const float *work);

/* SPDX-License-Identifier: MIT
 *
 * The routing of mixtures of experts: which rows go to which expert, and the layout of their work
 * space. */
#ifndef MOE_H
#define MOE_H

#include "variants/variant.h"

enum { MOE_EXPERTS = 1 << 12 }; /* at most */

/* Their own numbers in a config. */
struct moe {
    int experts, k, capacity; /* E, those of a row, rows of one (0 = any number) */
    float aux_coef;           /* weight of the auxiliary loss */
    int groups;               /* of experts, each of which serves a row: ffn_proto */
    int act;                  /* of hidden units: enum moe_act */
};
static inline const struct moe *moe_of(const struct config *c)
{
    return config_numbers(c, SLOT_FFN);
}

enum act_kind moe_act(const struct config *c);
/* How rows choose: the best of all experts, the best of each group, by their token. */
bool moe_in_groups(const struct config *c);
bool moe_by_token(const struct config *c);
/* Experts of a row. */
int moe_k(const struct config *c);
/* Groups over which the router's probabilities sum to 1. */
int moe_groups(const struct config *c);

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
    float *pre;      /* [places,F] before the activation and without bias, unless that is ReLU */
    float *out;      /* [places,D] */
};
size_t moe_work_floats(const struct config *c, int rows);
/* The work space that forward left, located again. */
struct moe_work moe_work_of(const struct config *c, int rows, const float *work);

/* Maximum number of places. */
size_t moe_most_places(const struct config *c, int rows);

/* From p to gate, choice, route, place and first; by tokens, gate and choice are given. */
void moe_assign(const struct config *c, const struct moe_work *w, int rows);

/* The experts of tokens in a table that balances them: from the most frequent token on, equal ones
 * in order, each goes to the first expert with the fewest occurrences so far. */
void moe_balance(const int32_t *freq, int V, int experts, int32_t *table);

/* The share of the rows whose first choice is expert e. */
double moe_share(const struct config *c, const struct moe_work *w, int rows, int e);
double moe_aux(const struct config *c, int rows, const float *work);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The routing of a mixture of experts: which rows go to which expert, and the layout of ffn_moe's
 * work space. */
#ifndef MOE_H
#define MOE_H

#include "variants/variant.h"

/* Its own numbers in a config. */
struct moe {
    int experts, k, capacity; /* E, those of a row, rows of one (0 = any number) */
    float aux_coef;           /* weight of the auxiliary loss */
};
static inline const struct moe *moe_of(const struct config *c) { return config_own(c, SLOT_FFN); }

/* A place is a served choice; places are sorted by expert. */
struct moe_work {
    float *p;        /* [rows,E] the router's probabilities */
    float *gate;     /* [rows,k] */
    int32_t *choice; /* [rows,k] expert, best first */
    int32_t *route;  /* [rows,k] the same, -1 if the expert was full */
    int32_t *place;  /* [rows,k] -1 if the expert was full */
    int32_t *first;  /* [E+1] first place of each expert */
    float *in;       /* [places,D] */
    float *hidden;   /* [places,F] */
    float *out;      /* [places,D] */
};
size_t moe_work_floats(const struct config *c, int rows);
/* The work space that forward left, located again. */
struct moe_work moe_work_of(const struct config *c, int rows, const float *work);

/* Maximum number of places. */
size_t moe_most_places(const struct config *c, int rows);

/* From p to gate, choice, route, place and first. */
void moe_assign(const struct config *c, const struct moe_work *w, int rows);

/* The share of the rows whose first choice is expert e. */
double moe_share(const struct config *c, const struct moe_work *w, int rows, int e);
double moe_aux(const struct config *c, int rows, const float *work);

#endif

/* SPDX-License-Identifier: MIT
 *
 * What the two halves of the reference, forward and backward, share. */
#ifndef REF_H
#define REF_H

#include "backend.h"

/* Visible keys [lo, hi) of one query row and their probabilities p[lo..hi); p has room for K. */
struct ref_row {
    int lo, hi;
    double *p;
    double lse;
};
void ref_probabilities(const struct attn *a, int b, int h, int i, struct ref_row *row);

/* Where key j of query i finds its row in the tables; 0 where there are none. */
static inline int ref_table_row(const struct attn *a, int i, int j)
{
    return clamp_int(j + a->R - 1 - a->M - i, 0, max_int(0, a->R + a->Rf - 1));
}

struct attn_need ref_need_backward(const struct attn *a, int threads);
void ref_backward(const struct engine *g, const struct attn *a, const struct attn_grad *d,
                  void *scratch);

void softmax_grad_ref(const struct softmax_grad *o);
void norm_grad_ref(const struct norm_grad *o);
void act_grad_ref(const struct act_grad *o);
void gate_grad_ref(const struct gate_grad *o);
void nll_grad_ref(const struct nll_grad *o);

#endif

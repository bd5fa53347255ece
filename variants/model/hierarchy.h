/* SPDX-License-Identifier: MIT
 *
 * Two levels of bidirectional layers, as in HIBERT (Zhang et al. 2019, arXiv:1905.06566), TNT (Han
 * et al. 2021, arXiv:2103.00112) and Hi-Transformer (Wu et al. 2021, arXiv:2106.01040): a layer
 * within each chunk of C rows, one vector for a chunk, a layer over these vectors, and each of them
 * added to the rows of its chunk:
 *
 *   i   = inner(x by chunks)
 *   z_k = W [i_kC; ..; i_(k+1)C-1] + b, or i_kC
 *   t   = outer(z)
 *   y_r = i_r + t_(r/C)
 *
 * Both are ordinary layers with other numbers of sequences and rows. */
#ifndef HIERARCHY_H
#define HIERARCHY_H

#include "variants/model/sublayer/sublayer_list.h"

/* How a chunk becomes one vector. */
enum fold { FOLD_LINEAR, FOLD_FIRST, FOLDS };
extern const char *const fold_name[FOLDS + 1]; /* "linear" "first" NULL */

struct hierarchy {
    struct config c;
    int chunk;
    bool folds; /* W and b, or the first row of a chunk */
    struct sublayers inner, outer;
    int at_fold; /* index of W, -1 = none */
    const struct param *fold;
    struct extent max;
    float *x, *in;  /* [B,L,D] inner's input and output */
    float *z, *top; /* [B,L/C,D] outer's */
    float *d_top;   /* the gradient of the latter; NULL without backward */
};

/* List the parameters of both layers of `c`: inner.*, outer.*, fold.*. */
enum status hierarchy_init(struct hierarchy *t, const struct config *c, int chunk, bool folds,
                           struct params *p, struct err *e);
/* Count or place for B sequences of L rows, a multiple of the chunk. */
enum status hierarchy_bind(struct hierarchy *t, const struct engine *g, const struct params *p,
                           struct extent max, bool backward, struct arena *a, struct err *e);
void hierarchy_free(struct hierarchy *t);

/* y [B,L,D] from x; t->top is what outer says. Backward: d_x from d_y; accumulates gradients. */
void hierarchy_forward(struct hierarchy *t, const struct engine *g, float *y, const float *x);
void hierarchy_backward(struct hierarchy *t, const struct engine *g, float *d_x, const float *d_y);

#endif

/* SPDX-License-Identifier: MIT
 *
 * AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101) with the bias correction of Adam (Kingma and
 * Ba 2015, arXiv:1412.6980), and clipping by the global norm of the gradient. Results do not depend
 * on the number of threads. */
#ifndef ADAM_H
#define ADAM_H

#include "variants/variant.h"

struct adam {
    double beta1, beta2, eps; /* 0.9, 0.999, 1e-8 */
    double weight_decay;      /* of matrices; vectors and tables do not decay */
    int step;                 /* steps taken */
    float **m, **v;           /* [n] first and second moments, by parameter */
    int n;
};

/* Moments for every parameter (PART_OPTIMIZER), to be zeroed by adam_reset. Call over a counting
 * and over a placed arena, as any bind. */
void adam_bind(struct adam *o, const struct params *p, struct arena *a);
void adam_reset(struct adam *o, const struct params *p);
void adam_free(struct adam *o);

/* Euclidean norm of all gradients together, in double, in a fixed order; steps of buffers are not
 * among them. */
double grad_norm(const struct params *p, int threads);

/* One update of every parameter from its gradient times `scale` (1, or clip / norm), and of every
 * buffer by its step unless lr is 0. */
void adam_step(struct adam *o, struct params *p, double lr, double scale, int threads);

#endif

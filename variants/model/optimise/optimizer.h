/* SPDX-License-Identifier: MIT
 *
 * The optimiser: AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101) with the bias correction of
 * Adam (Kingma and Ba 2015, arXiv:1412.6980), or Muon (muon.h) for the matrices between layers and
 * AdamW for the rest; clipping by the global norm of the gradient. Results do not depend on the
 * number of threads.
 *
 * optimise/ holds optimisers; schedules and trainings are in harness/learn/train/. */
#pragma once

#include "muon.h"
#include "variants/variant.h"

enum optimizer_kind { OPTIMIZER_ADAMW, OPTIMIZER_MUON };
extern const char *const optimizer_name[]; /* "adamw" "muon" NULL */

struct optimizer {
    /* Set before optimizer_bind; all zero is AdamW without decay. */
    enum optimizer_kind kind;
    enum muon_scale scale;
    double weight_decay; /* of the groups in `decays` */
    unsigned decays;     /* 1 << enum param_group, each */

    double beta1, beta2, eps; /* 0.9, 0.999, 1e-8 */
    int step;                 /* steps taken */
    float **m, **v; /* [n] first and second moments, by parameter, NULL where it is frozen;
                               * v is NULL for Muon's, whose m is its momentum */
    int n;
    struct muon muon;
};

/* Moments for every parameter (PART_OPTIMIZER) and work space, to be zeroed by optimizer_reset.
 * Call over a counting and over a placed arena, as any bind. */
void optimizer_bind(struct optimizer *o, const struct params *p, struct arena *a);
void optimizer_reset(struct optimizer *o, const struct params *p);
void optimizer_free(struct optimizer *o);

/* Euclidean norm of all gradients together, in double, in a fixed order; steps of buffers, and
 * gradients of what is frozen, are not among them. */
double grad_norm(const struct params *p, int threads);

/* One update of every parameter that is not frozen from its gradient times `scale` (1, or clip / norm), and of every
 * buffer by its step unless lr is 0. */
void optimizer_step(struct optimizer *o, struct params *p, const struct engine *g, double lr,
                    double scale);

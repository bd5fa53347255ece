/* SPDX-License-Identifier: MIT
 *
 * The gradient of the whole batch from those of the ranks' parts of it. Sums begin while backward
 * still runs: a bucket of parameters as soon as no layer below adds to them. */
#pragma once

#include "harness/util/ranks.h"

#include "variants/model/lm/lm.h"

struct grad_sum {
    struct ranks *ranks; /* NULL, or of one: nothing is summed */
    struct params *params;
    int from;                   /* the sums of the parameters from this on have begun */
    int64_t begun_ns;           /* the first of them; 0 = none */
    double wait_ns, between_ns; /* since grad_sum_told: not hidden; from first sum to last */
    double bytes;
    int steps;
};

/* Before lm_backward, which then begins sums. */
void grad_sum_begin(struct grad_sum *s, struct lm *m);
/* After it: the gradients of all parameters are the means over ranks. */
void grad_sum_end(struct grad_sum *s);

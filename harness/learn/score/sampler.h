/* SPDX-License-Identifier: MIT
 *
 * The next token of a text, chosen from the logits of a model. */
#pragma once

#include "variants/base/sort.h"

/* p(i) is proportional to exp(logit / temperature), over the top_k largest logits, and of these
 * over the fewest whose sum is top_p or more. Of equal logits the lower id counts as larger. */
struct sampler {
    double temperature; /* 0 = always the largest */
    int top_k;          /* 0 = all */
    double top_p;       /* in (0, 1] */
    struct candidate {
        struct sort_key logit; /* of this token */
        double p;
    } * all; /* [V], malloc'ed by sampler_open */
    int V;
};

enum status sampler_open(struct sampler *s, int V, struct err *e);
void sampler_close(struct sampler *s);

/* u is uniform in (0, 1): the token where the sum of p passes u. -1 where a logit is no number. */
int32_t sampler_next(const struct sampler *s, const float *logits, double u);

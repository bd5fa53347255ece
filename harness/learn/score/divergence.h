/* SPDX-License-Identifier: MIT
 *
 * How far the next-token distributions q of a model are from p, those of the same model in f32:
 *   KL(p || q) = sum over words x of p(x) (ln p(x) - ln q(x))             (nats; Kullback, Leibler 1951)
 * token by token, and how often both find the same token most likely. */
#pragma once

#include "variants/base/base.h"

struct divergence {
    double *kl; /* [n] nats of each token */
    size_t n, room;
    size_t same; /* tokens whose most likely word is the same; of equal logits the first counts */
};

/* Room for `more` tokens. */
enum status divergence_room(struct divergence *d, size_t more, struct err *e);

/* Add the tokens of logits p and q [rows,V], for which there is room. */
void divergence_add(struct divergence *d, const float *p, const float *q, int rows, int V,
                    int threads);

/* Over the tokens so far; NAN without any. Sorts them. */
struct divergence_means {
    double kl, kl_p99; /* nats: the mean, and what 99 of 100 tokens do not exceed */
    double same_pct;
};
struct divergence_means divergence_means(struct divergence *d);

void divergence_free(struct divergence *d);

/* SPDX-License-Identifier: MIT
 *
 * Texts that are pairs of a source and a target (synthetic_pair), as an encoder and a decoder read
 * them: the source, and the target behind its mark, which the decoder is to go on from. */
#pragma once

#include "corpus.h"

struct pairs {
    int source, target; /* symbols of each */
    size_t n;           /* pairs */
};

/* Those of a text. E_USAGE if it has none. */
enum status pairs_of(struct pairs *p, const struct corpus *c, struct err *e);

/* Pair i: source [p->source], and tokens [p->target] with what follows each. */
void pairs_read(const struct pairs *p, const uint8_t *text, size_t i, int32_t *source,
                int32_t *tokens, int32_t *targets);

/* Nats of the target of pair i under the true source, which a decoder sees whole; `nll` are a
 * model's, and go to `a`. */
double pairs_floor(const struct pairs *p, const struct corpus *c, size_t i, const float *nll,
                   struct answers *a);

/* How many of the n targets are the most likely token of their row of logits [n,V]. */
int pairs_right(const float *logits, const int32_t *targets, int n, int V);

/* What a token is called that belongs to a target: "target symbol". */
#define PAIRS_UNIT "target symbol"

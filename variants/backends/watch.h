/* SPDX-License-Identifier: MIT
 *
 * Attention whose probabilities are seen, for what looks into trained models. */
#pragma once

#include "backend.h"

/* Which attention of a model ran. Calls of the same `weights`, `nth` and `part` are of one
 * attention: of its blocks of queries, or token by token. */
struct attn_place {
    const void *weights; /* of the sub-layer */
    const void *kind;    /* what sub-layers of its kind have in common */
    int nth;             /* sub-layers of its kind before it, those that run again among them */
    int layer;           /* that it belongs to, from 0 */
    int part;            /* softmaxes of the sub-layer before it */
    int first;           /* query of the segment that is the first of this call */
    int tokens;          /* that a query is of */
    const double *p; /* its probabilities, if its operands do not say them (attn_probabilities) */
};

struct attn_watch {
    /* The operands of `a` are those of its forward pass. */
    void (*see)(void *arg, const struct engine *g, const struct attn_place *at,
                const struct attn *a);
    void *arg;
};

/* Attention that is bound from now on runs in ref, whatever the engine's backend is, and is seen.
 * `watch` must live as long as the engine. */
void engine_watch(struct engine *g, const struct attn_watch *watch);

static inline void attn_seen(const struct engine *g, struct attn_place at, const struct attn *a)
{
    if (g->watch)
        g->watch->see(g->watch->arg, g, &at, a);
}

/* p [H,L,K + sinks] of the first sequence, the keys and then the sinks, before heads are mixed
 * (attn.h), or shares of what stands in their place (`weigh`); 0 where a head does not see a key, and
 * for queries that the engine does not want.
 * work: room for attn_probabilities_work(a) doubles. */
void attn_probabilities(const struct engine *g, const struct attn_place *at, const struct attn *a,
                        double *p, double *work);
size_t attn_probabilities_work(const struct attn *a);

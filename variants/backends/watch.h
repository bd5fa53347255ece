/* SPDX-License-Identifier: MIT
 *
 * Attention whose probabilities are seen, for what looks into trained models. */
#ifndef WATCH_H
#define WATCH_H

#include "backend.h"

struct attn_watch {
    /* Sequence b of one call: p [H,L,K + sinks], the keys and then the sinks, before heads are mixed
     * (attn.h); 0 where a head does not see a key. */
    void (*see)(void *arg, const struct attn *a, int b, const double *p);
    void *arg;
};

/* Attention that is bound from now on runs in ref, whatever the engine's backend is, and is seen.
 * `watch` must live as long as the engine. */
void engine_watch(struct engine *g, const struct attn_watch *watch);

#endif

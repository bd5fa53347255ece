/* SPDX-License-Identifier: MIT
 *
 * What kinds of sub-layer with attention say to who looks into a model. A kind that says nothing, since
 * its probabilities are not those of one call, is not seen. */
#ifndef SUBLAYER_SEEN_H
#define SUBLAYER_SEEN_H

#include "sublayer.h"
#include "variants/backends/watch.h"

/* Softmax `part` of the sub-layer has run, of queries of the segment from `first` on. */
static inline void sublayer_seen(const struct engine *g, const struct sublayer *s, int part,
                                 int first, const struct attn *a)
{
    attn_seen(g,
              (struct attn_place){s->weights, s->kind, s->nth, s->layer, part, first, 1 << s->level,
                                  NULL},
              a);
}

#endif

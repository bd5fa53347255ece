/* SPDX-License-Identifier: MIT
 *
 * How kinds of sub-layer show their attention to a watcher (variants/backends/watch.h). A kind whose
 * probabilities are not those of calls of attention shows nothing. */
#pragma once

#include "sublayer.h"

/* Shows softmax `part` of the sub-layer, of queries of the segment from `first` on. */
static inline void sublayer_seen(const struct engine *g, const struct sublayer *s, int part,
                                 int first, const struct attn *a)
{
    attn_seen(g,
              (struct attn_place){s->weights, s->kind, s->nth, s->layer, part, first, 1 << s->level,
                                  NULL},
              a);
}

/* Shows it and runs it. */
static inline void sublayer_attend(const struct engine *g, const struct sublayer *s,
                                   const struct work *w, int part, int first, const struct attn *a)
{
    sublayer_seen(g, s, part, first, a);
    s->state.attention.impl->forward(g, a, w->scratch);
}

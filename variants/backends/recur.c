/* SPDX-License-Identifier: MIT
 *
 * Which implementation runs a recurrence. */
#include "recur.h"

unsigned recur_terms(const struct recur *r)
{
    return (r->g_width == 0   ? 0
            : r->g_width == 1 ? RECUR_DECAY_HEAD
                              : RECUR_DECAY_CHANNEL) |
           (r->beta.at ? RECUR_ERASE_OWN : 0) | (r->a.at ? RECUR_ERASE_FREE : 0) |
           (r->u ? RECUR_BONUS : 0) | (r->i.at ? RECUR_GATE : 0) |
           (r->norm != RECUR_PLAIN ? RECUR_NORMALISED : 0);
}

const struct recur_impl *engine_recur(const struct engine *g, const struct recur *r, bool backward)
{
    static const struct recur_impl *const chunked[] = {&recur_chunked, &recur_ref};

    if (g->backend == &backend_ref)
        return &recur_ref;
    for (size_t i = 0; i < ARRAY_LEN(chunked); i++)
        if (chunked[i]->accepts(r, backward))
            return chunked[i];
    return NULL;
}

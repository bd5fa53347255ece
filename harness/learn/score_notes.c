/* SPDX-License-Identifier: MIT
 *
 * Notes of a score: what is unusual, and the option that shows or mends it. */
#include "score_notes.h"

#include "variants/model/attention/key_steps.h"

#include <stdio.h>
#include <string.h>

void score_note_keys(char *note, size_t size, const struct lm *exact)
{
    enum { FEW = 8 };
    const size_t n = strlen(note);
    const struct key_steps k = key_steps(exact);

    if (k.steps < FEW)
        snprintf(note + n, size - n,
                 "%skeys of attention %d, head %d: beside the largest number the others have %.2g "
                 "steps of 127 in q8  -> --kv-dtype bf16",
                 n > 0 ? "; " : "", k.attention, k.head, k.steps);
}

void score_note_heads(char *note, size_t size, const struct lm *m, const struct heads *seen)
{
    enum { ROOM = 16 }; /* for one more layer, and for what says that more follow */
    const struct sublayers *const all = &m->sublayers;
    int said = -1;

    for (int i = 0; i < all->n; i++) {
        const struct sublayer *const s = &all->at[i];
        const size_t n = strlen(note);
        if (!s->kind->mixes || s->layer <= said || heads_has(seen, s->layer))
            continue;
        if (said >= 0 && size - n < ROOM) {
            snprintf(note + n, size - n, ", ...");
            return;
        }
        snprintf(note + n, size - n, "%s%s%d", said < 0 && n > 0 ? "; " : "",
                 said < 0 ? "--attention: no probabilities of layers " : ", ", s->layer + 1);
        said = s->layer;
    }
}

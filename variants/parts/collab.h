/* SPDX-License-Identifier: MIT
 *
 * The numbers of collaborative heads (variants/collaborative.c). */
#pragma once

#include "parts.h"

struct collab {
    int dk;            /* coordinates of the queries and keys that heads share */
    bool content_bias; /* a score of the key's row alone, too */
};

extern const struct part_numbers collab_numbers;

static inline bool has_collab(const struct config *c) { return c->mixer == &mixer_collab; }
/* Only of a model that has them. */
static inline const struct collab *collab_of(const struct config *c)
{
    return config_numbers(c, SLOT_MIXER);
}

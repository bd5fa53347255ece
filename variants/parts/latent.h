/* SPDX-License-Identifier: MIT
 *
 * The sizes of latent attention (variants/mla.c). */
#pragma once

#include "parts.h"

struct latent {
    int nope, rope; /* coordinates of a query and a key: not rotated, rotated; dh together */
    int rank;       /* width of a latent */
    int q_rank;     /* width that queries are compressed to; 0 = they are not */
};

extern const struct part_numbers latent_numbers;

static inline bool has_latents(const struct config *c) { return c->mixer == &mixer_mla; }
/* Only of a model that has latents. */
static inline const struct latent *latent_of(const struct config *c)
{
    return config_numbers(c, SLOT_MIXER);
}
/* Floats of a remembered row: the latent and the rotated coordinates of its key. */
static inline int latent_width(const struct config *c)
{
    return latent_of(c)->rank + latent_of(c)->rope;
}

/* Rotated coordinates of a head of width dh by default: a third of it, or half of the others. */
int latent_rope(int dh);

/* SPDX-License-Identifier: MIT
 *
 * Synthesized scores as a kind of sub-layer, for those who look inside: the check of golden files
 * that have the bare operator. */
#ifndef SUB_SYNTHESIZER_H
#define SUB_SYNTHESIZER_H

#include "sub.h"

/* The attention of the last forward, of B sequences of L rows. */
struct attn synthesizer_operands(const struct sub *s, const struct work *w, int B, int L);

#endif

/* SPDX-License-Identifier: MIT
 *
 * What a score says beside its numbers. Each adds to a text of so many bytes, which may be empty. */
#ifndef SCORE_NOTES_H
#define SCORE_NOTES_H

#include "heads.h"

#include "variants/model/lm.h"

/* Where rounding its cached keys to q8 leaves few steps to numbers beside a head's largest one. */
void score_note_keys(char *note, size_t size, const struct lm *exact);
/* Layers that mix tokens, but not by probabilities of keys. */
void score_note_heads(char *note, size_t size, const struct lm *m, const struct heads *seen);

#endif

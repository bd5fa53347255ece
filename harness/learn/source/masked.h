/* SPDX-License-Identifier: MIT
 *
 * Masked language models (Devlin et al. 2019): a share of the tokens of a window is hidden behind
 * one symbol, and the loss is that of the hidden ones. All windows of as many tokens hide as many,
 * so that means of windows are those of tokens. Every chosen token is hidden; BERT shows a tenth of
 * them and replaces a tenth by others, for the sake of later tasks. */
#pragma once

#include <stdint.h>

/* The seed of what is hidden where models are scored, the same tokens for all of them; and what that
 * of a training becomes. */
enum { MASKED_SCORED = 1, MASKED_TRAINED = 0x6d61736b };

/* How many of n tokens a share is, at least one. */
int masked_count(double share, int n);

/* Hide `count` of the tokens [n] behind `mask`: which ones follows from seed and number of the
 * window. `at` [count] are their places in order, `was` what stood there. */
void masked_hide(int count, uint64_t seed, uint64_t window, int32_t mask, int32_t *tokens, int n,
                 int32_t *at, int32_t *was);

/* What a token is called that was hidden: "masked byte". */
const char *masked_unit(const char *unit);

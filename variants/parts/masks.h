/* SPDX-License-Identifier: MIT
 *
 * Sparse masks of a model: read from and written as text, and used in an attention. The pattern
 * itself is struct mask (backends/mask.h). */
#pragma once

#include "variants/variant.h"

/* "window=4,stride=4" is one mask; several, separated by semicolons, are assigned to the heads in
 * turn, or as `heads` says, "0,0,1". `random` is the number of blocks drawn per block of queries.
 * E_USAGE names the error. */
enum status masks_parse(struct masks *m, const char *text, const char *heads, struct err *e);
/* The inverse of masks_parse; "" if there are no masks. */
void masks_print(char text[MASK_TEXT], char heads[MASK_TEXT], const struct masks *m);
/* E_USAGE if a mask's fields contradict each other. */
enum status masks_check(const struct masks *m, const char *who, struct err *e);

/* Take memory for up to L queries from the arena and set the masks of `a`. A single window shared
 * by all heads becomes a->window, which every implementation supports. */
/* Windows of heads as text, "2,4;3,9": layers with semicolons between, heads with commas; "" =
 * none. E_USAGE. */
enum status head_windows_parse(struct head_windows *w, const char *text, struct err *e);
void head_windows_print(char text[MASK_TEXT], const struct head_windows *w);

void masks_reserve(const struct masks *m, int L, struct arena *arena, struct attn *a);
/* A copy of `a` for queries about its terms, while its masks are not yet readable. */
struct attn masks_placeholder(const struct attn *a);
/* Draw the random blocks of the queries of `a`, in a model's nth attention; before every use of it,
 * once its stream position is known. The result depends on stream positions only. */
void masks_draw(const struct masks *m, int nth, struct attn *a);
/* The x-th key block drawn for a query block: one before it, -1 for the first block. */
int32_t masks_random_block(int nth, int64_t query_block, int n_random, int x);

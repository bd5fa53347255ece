/* SPDX-License-Identifier: MIT
 *
 * Sparse masks of a model: read from and written as text, and put into an attention. The pattern
 * itself is struct mask (backends/mask.h). */
#ifndef MASKS_H
#define MASKS_H

#include "variants/variant.h"

/* "window=4,stride=4": the fields of one mask; several, behind semicolons, go to the heads in turn,
 * or as `heads` says, "0,0,1". `random` is how many blocks are drawn for each block of queries.
 * E_USAGE names what is wrong. */
enum status masks_parse(struct masks *m, const char *text, const char *heads, struct err *e);
/* What masks_parse reads; "" where there is none. */
void masks_print(char text[MASK_TEXT], char heads[MASK_TEXT], const struct masks *m);
bool masks_equal(const struct masks *a, const struct masks *b);
/* E_USAGE where the fields of one do not go together. */
enum status masks_check(const struct masks *m, const char *who, struct err *e);

/* Take what they need for up to L queries from the arena and let `a` see through them. A window
 * that all heads share becomes that of `a`, which every implementation knows. */
void masks_reserve(const struct masks *m, int L, struct arena *arena, struct attn *a);
/* `a` for those who ask which terms it has, while its masks are not to be touched. */
struct attn masks_asked(const struct attn *a);
/* Draw the random blocks of the queries of `a`, in the nth attention of a model; before every use
 * of it, once its place in the stream is known. What is drawn depends on places alone. */
void masks_draw(const struct masks *m, int nth, struct attn *a);
/* The x-th block of keys for a block of queries: before it, -1 for the first. */
int32_t masks_random_block(int nth, int64_t query_block, int n_random, int x);

#endif

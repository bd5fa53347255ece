/* SPDX-License-Identifier: MIT
 *
 * A list of steps as a kind of sub-layer: what running it needs of what it carries. */
#pragma once

#include "sublayer.h"

/* Do states go on from call to call? Or does each run rows of memory again? */
bool steps_go_on(const struct sublayer *s);
bool steps_keep_rows(const struct sublayer *s);
/* How many, of so many that attention remembers. */
int steps_rerun(const struct sublayer *s, int M);
/* Is the i-th state changed by each call? */
bool steps_advance(const struct sublayer *s, int i);
int64_t steps_position(const struct sublayer *s);
/* Of the value that layers share. */
size_t steps_first_floats(const struct sublayer *s, struct extent max);

/* How many of M rows of memory a layer that attends keeps: the bare operator has all that it is given;
 * the rows and caches of such lists. */
int steps_kept(const struct sublayer *s, int M);
int steps_keep(const struct sublayer *s, enum mem_kind mem, int M);
size_t steps_caches(const struct sublayer *s, int M);
void steps_caches_bind(struct sublayer *s, struct arena *a);
/* Room in them for L new rows; the list's own order. Rows of memory that they have, and far rows before
 * those. */
void steps_caches_reserve(struct sublayer *s, int L, struct cache *cache[STEP_CACHES]);
int steps_cached_rows(const struct sublayer *s);
int steps_cached_far(const struct sublayer *s);
void steps_caches_commit(struct sublayer *s, int L);
void steps_caches_forget(struct sublayer *s);

/* Count or place the states of a list that is complete, for its largest shape. */
void steps_states_bind(struct sublayer *s, struct arena *a);
void steps_states_forget(struct sublayer *s);
void steps_states_commit(struct sublayer *s, int L);
bool steps_states_carried(const struct sublayer *s, int i, struct carried *out);

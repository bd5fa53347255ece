/* SPDX-License-Identifier: MIT
 *
 * Attention as one partition of oneDNN's graph, and by its products of all heads at once. */
#pragma once

#include "variants/backends/backend.h"

/* Declines everything where the library has no graph. */
extern const struct attn_impl attn_graph;

extern const struct attn_impl attn_batched;

/* Masks that it keeps, and the most that the library held as work space of a partition. */
size_t graph_held_bytes(void);

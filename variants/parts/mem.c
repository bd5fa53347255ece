/* SPDX-License-Identifier: MIT
 *
 * How tokens of past reach a layer. */
#include "parts.h"

/* Each layer caches its inputs for the last mem_len tokens, or at evaluation the
 * keys and values projected from them, which is exact because relative codes do not live in k. */
const struct mem mem_segment = {.name = "segment", .recurrent = true};

/* Each layer carries a few numbers that all of the past went into. */
const struct mem mem_state = {.name = "state", .state = true};

/* Likewise, but rows too old for it are compressed instead of forgotten. */
const struct mem mem_compressive = {.name = "compressive", .recurrent = true, .compressed = true};

/* No cache: the window is run again for every segment. */
const struct mem mem_none = {.name = "none", .recurrent = false};

/* SPDX-License-Identifier: MIT
 *
 * How past tokens reach a layer. */
#include "parts.h"

/* Each layer caches its inputs for the last mem_len tokens or, at evaluation, the keys and values
 * projected from them. That is exact, because k contains no relative positions. */
const struct mem mem_segment = {.name = "segment", .recurrent = true};

/* Each layer carries a state of fixed size that all past tokens are summed into. */
const struct mem mem_state = {.name = "state", .state = true};

/* As segment, but rows too old for the memory are compressed instead of dropped. */
const struct mem mem_compressive = {.name = "compressive", .recurrent = true, .compressed = true};

/* No cache: the window is recomputed for every segment. */
const struct mem mem_none = {.name = "none", .recurrent = false};

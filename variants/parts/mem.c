/* SPDX-License-Identifier: MIT
 *
 * How tokens of past reach a layer. */
#include "parts.h"

/* Each layer caches its inputs for the last mem_len tokens, or at evaluation the
 * keys and values projected from them, which is exact because relative codes do not live in k. */
const struct mem mem_segment = {.name = "segment", .recurrent = true};

/* No cache: the window is run again for every segment. */
const struct mem mem_none = {.name = "none", .recurrent = false};

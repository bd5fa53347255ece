/* SPDX-License-Identifier: MIT
 *
 * Attention by oneDNN products of all heads at once. */
#pragma once

#include "variants/backends/backend.h"

extern const struct attn_impl attn_batched;

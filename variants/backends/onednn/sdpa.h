/* SPDX-License-Identifier: MIT
 *
 * Attention by oneDNN products of all heads at once. */
#ifndef ONEDNN_SDPA_H
#define ONEDNN_SDPA_H

#include "variants/backends/backend.h"

extern const struct attn_impl attn_batched;

#endif

/* SPDX-License-Identifier: MIT
 *
 * Attention in oneDNN's own manner: products of all heads at once. */
#ifndef ONEDNN_ATTN_H
#define ONEDNN_ATTN_H

#include "backend.h"

extern const struct attn_impl attn_batched;

#endif

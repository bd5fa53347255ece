/* SPDX-License-Identifier: MIT
 *
 * Attention composed of a backend's own matrix products and row operations: the implementation of
 * the libraries that have no fused attention. */
#ifndef COMPOSED_H
#define COMPOSED_H

#include "backend.h"

extern const struct attn_impl attn_composed;

#endif

/* SPDX-License-Identifier: MIT
 *
 * Long-short range attention, for the list of sub-layers. */
#pragma once

#include "variants/model/sublayer/sublayer.h"

/* The model as its attention sees it: as narrow as its share of the channels. */
struct config lsra_attention(const struct config *c);

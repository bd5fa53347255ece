/* SPDX-License-Identifier: MIT
 *
 * Long-short range attention, for the list of sub-layers. */
#ifndef SUBLAYER_LSRA_H
#define SUBLAYER_LSRA_H

#include "variants/model/sublayer/sublayer.h"

/* The model as its attention sees it: as narrow as its share of the channels. */
struct config lsra_attention(const struct config *c);

#endif

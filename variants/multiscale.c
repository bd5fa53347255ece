/* SPDX-License-Identifier: MIT
 *
 * Multi-scale self-attention: Guo et al. 2020, "Multi-Scale Self-Attention for Text
 * Classification".
 *
 *   head h of layer l sees the w_lh newest keys
 *
 * Windows of many lengths, short ones in low layers; no parameter more. Positions are rotary. */
#include "variants/parts/parts.h"

const struct variant variant_multiscale = {
    .name = "multiscale",
    .paper = "Guo et al. 2020, arXiv:1912.00544",
    .about = "every head has a window of its own, short ones in low layers",
    AS_ROPE,
    .head_windows = "16,32,64,128;32,64,128,256;64,128,256,0;128,256,0,0",
};

/* SPDX-License-Identifier: MIT
 *
 * A dilated window: Beltagy et al. 2020, "Longformer: The Long-Document Transformer", section 3.1.
 *
 *   key j is visible to query i if dist < w r and dist mod r = 0
 *
 * w keys reach w r tokens back. As the authors recommend, only half of the heads are dilated, so
 * that near keys remain visible. Positions are rotary. */
#include "variants/parts/parts.h"

const struct variant variant_dilated = {
    .name = "dilated",
    .paper = "Beltagy et al. 2020, arXiv:2004.05150",
    .about = "half of the heads see the newest 32 keys, half every fourth of 128",
    AS_ROPE,
    .mask = "window=32;window=32,dilation=4",
};

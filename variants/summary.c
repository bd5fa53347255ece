/* SPDX-License-Identifier: MIT
 *
 * One vector for each past segment: Yoshida, Ettinger and Gimpel 2020, "Adding Recurrence to
 * Pretrained Transformers for Improved Efficiency and Context Size".
 *
 *   attention; cross attention to the vectors of the last 8 segments; feed-forward. After a segment
 *   a small network makes its vector of the mean of its rows.
 *
 * The gradient of a segment reaches the networks that made the vectors that it reads, for 2 segments
 * back (--set replay). Equations: variants/model/lm/slots_mean.c. Otherwise Memformer, whose slots are
 * rewritten by attention. */
#include "variants/parts/parts.h"

const struct variant variant_summary = {
    .name = "summary",
    .paper = "Yoshida et al. 2020, arXiv:2008.07027",
    .about = "one vector for each of the last 8 segments, which every layer reads",
    .control = "alibi --norm pre",
    .pos = &pos_alibi,
    .mem = &mem_hybrid,
    .wiring = WIRING_PRE,
    .subs = "sxf",
    .slots = 8,
    .slot_write = SLOTS_MEAN,
    .whole = true,
};

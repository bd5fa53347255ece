/* SPDX-License-Identifier: MIT
 *
 * Memformer: Wu et al. 2020, "Memformer: A Memory-Augmented Transformer for Sequence Modeling".
 *
 *   attention; cross attention to 32 slots; feed-forward. After a segment the slots attend to it.
 *
 * What the slots hold does not grow with the past (model/lm/slots.h). The paper has them in an
 * encoder; here, in a decoder, a segment's rows are read by the slots and the slots by the next
 * segment. They come besides a memory of the last tokens, which may be empty. Positions are
 * ALiBi's. */
#include "variants/parts/parts.h"

const struct variant variant_memformer = {
    .name = "memformer",
    .paper = "Wu et al. 2020, arXiv:2010.06891",
    .about = "slots that every layer reads and each segment rewrites",
    .control = "alibi --norm pre",
    .pos = &pos_alibi,
    .mem = &mem_hybrid,
    .wiring = WIRING_PRE,
    .subs = "sxf",
    .slots = 32,
    .whole = true,
};

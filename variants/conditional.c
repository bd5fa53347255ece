/* SPDX-License-Identifier: MIT
 *
 * Conditional computation: Bapna, Arivazhagan and Firat 2020, "Controlling Computation versus
 * Quality for Neural Sequence Models".
 *
 *   z = x + s(w.x + b) f(N(x)),  and the mean of all s is trained towards a budget
 *
 * A gate for each sub-layer and position (model/sublayer/sublayer_skip.h). Norms come first; positions are
 * ALiBi's. */
#include "variants/parts/parts.h"

const struct variant variant_conditional = {
    .name = "conditional",
    .paper = "Bapna et al. 2020, arXiv:2002.07106",
    .about = "as alibi; a gate for each sub-layer and position, within a budget",
    .control = "alibi --norm pre",
    .pos = &pos_alibi,
    .wiring = WIRING_PRE,
    .cond = COND_SOFT,
};

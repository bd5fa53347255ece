/* SPDX-License-Identifier: MIT
 *
 * Feedback Transformer: Fan et al. 2020, "Addressing Some Limitations of Transformers with Feedback
 * Memory".
 *
 *   every layer attends to one memory, whose rows are trained sums of all layers of past tokens
 *
 * All layers share keys and values, so a model caches them once, not once a layer. Tokens come one
 * after the other, in training too (model/lm/feedback.h). Positions are ALiBi's. */
#include "variants/parts/parts.h"

const struct variant variant_feedback = {
    .name = "feedback",
    .paper = "Fan et al. 2020, arXiv:2002.09402",
    .about = "one memory of all layers for all layers, token by token",
    .control = "alibi",
    .pos = &pos_alibi,
    .whole = true,
    .feedback = {.on = true, .shared = true},
};

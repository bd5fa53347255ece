/* SPDX-License-Identifier: MIT
 *
 * The enhanced recurrence of ERNIE-Doc: Ding et al. 2021, "ERNIE-Doc: A Retrospective
 * Long-Document Modeling Transformer".
 *
 *   layer l attends to [h^(l+1) of earlier segments; h^l of this one]
 *
 * The memory of a layer is what left it, not what entered it: what a token can know of grows with
 * the number of segments, and what is computed depends on where the text is cut. One token at a
 * time, every token is a segment. Cached keys and values are projected twice: from what entered,
 * then from what left. All else is Transformer-XL's. Reading a text twice is a second run over it;
 * the paper's pre-training tasks are not here. */
#include "variants/parts/parts.h"

const struct variant variant_erniedoc = {
    .name = "erniedoc",
    .alias = "ernie_doc",
    .paper = "Ding et al. 2021, arXiv:2012.15688",
    .about = "Transformer-XL whose layers remember what left them",
    .control = "xl",
    .pos = &pos_xl,
    .recur = RECUR_SAME,
};

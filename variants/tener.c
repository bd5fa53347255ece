/* SPDX-License-Identifier: MIT
 *
 * TENER: Yan et al. 2019, "TENER: Adapting Transformer Encoder for Named Entity Recognition".
 *
 *   s_ij = (q_i + u) . k_j + (q_i + v) . R[dist]
 *
 * Sinusoids of the distance as Transformer-XL has, but not projected, of a head's width, and
 * unscaled. */
#include "variants/parts/parts.h"

const struct variant variant_tener = {
    .name = "tener",
    .paper = "Yan et al. 2019, arXiv:1911.04474",
    .about = "as xl; sinusoids of distances are not projected, scores not scaled",
    .control = "xl",
    .pos = &pos_tener,
    .unscaled = true,
};

/* SPDX-License-Identifier: MIT
 *
 * ScaleNorm: Nguyen and Salazar 2019, "Transformers without Tears: Improving the Normalization of
 * Self-Attention".
 *
 *   N(x) = g x / |x|
 *
 * One trained number g per norm, initially sqrt(D), where a layer norm has 2 D. Norms come first,
 * as in the paper; attention, positions and memory are Transformer-XL's. */
#include "variants/parts/parts.h"

const struct variant variant_scalenorm = {
    .name = "scalenorm",
    .paper = "Nguyen and Salazar 2019, arXiv:1910.05895",
    .about = "Transformer-XL with rows scaled to one length as norm",
    AS_XL_PRE,
    .norm_kind = NORM_SCALE,
};

/* SPDX-License-Identifier: MIT
 *
 * ReZero: Bachlechner et al. 2020, "ReZero is All You Need: Fast Convergence at Large Depth".
 *
 *   y = x + alpha attn(x; [m; x])
 *   z = y + alpha ffn(y)
 *
 * One trained number alpha per layer for both sub-layers, initially near 0, replaces all norms.
 * Attention, positions and memory are Transformer-XL's. */
#include "variants/parts/parts.h"

const struct variant variant_rezero = {
    .name = "rezero",
    .paper = "Bachlechner et al. 2020, arXiv:2003.04887",
    .about = "Transformer-XL with one residual weight per layer instead of norms",
    .control = "xl",
    .pos = &pos_xl,
    .wiring = WIRING_REZERO,
};

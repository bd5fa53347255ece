/* SPDX-License-Identifier: MIT
 *
 * Nystromformer: Xiong et al. 2021, "Nystromformer: A Nystrom-Based Algorithm for Approximating
 * Self-Attention".
 *
 *   A_1 = softmax(q K~^T)
 *   A_2 = softmax(Q~ K~^T)
 *   A_3 = softmax(Q~ k^T)                q scaled
 *   o   = (A_1 Z) (A_3 v) + conv(v)      Z the pseudo-inverse of A_2, by iteration
 *   Z_0 = A_2^T / (largest row sum * largest column sum)
 *   Z <- Z/4 (13 I - A_2 Z (15 I - A_2 Z (7 I - A_2 Z)))
 *
 * With `landmark_identity` g, Z is that of A_2 + g I, which is not singular where landmarks are
 * alike: CSALR (Chen et al. 2020, "Compressed Self-Attention via Low-Rank Approximation") has 1.
 *
 * Q~ and K~ are means of m parts of the text, so this is for whole texts; conv is depth-wise over
 * time. With a landmark for each token and many iterations it is full attention. */
#include "variant.h"
#include "variants/model/sublayer/sublayer.h"
#include "variants/parts/parts.h"

const struct mixer mixer_nystrom = {.name = "nystrom",
                                    .numbers = &nystrom_numbers,
                                    .kind = &sublayer_nystrom,
                                    .both = true,
                                    .excludes = EXCLUDES(HAS_CAUSAL)};

const struct variant variant_nystrom = {
    .name = "nystrom",
    .paper = "Xiong et al. 2021, arXiv:2102.03902",
    .about = "attention through means of parts of the text",
    .control = "bert --norm pre",
    .pos = &pos_learned,
    .mem = &mem_none,
    .ffn = &ffn_gelu,
    .mixer = &mixer_nystrom,
    .wiring = WIRING_PRE,
    .attn_bias = ATTN_BIASED,
    .bidirectional = true,
};

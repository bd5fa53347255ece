/* SPDX-License-Identifier: MIT
 *
 * Lite Transformer: Wu et al. 2020, "Lite Transformer with Long-Short Range Attention".
 *
 *   half of the channels attend; the other half is a convolution of the last 15 rows, whose weights
 *   each row computes (Wu et al. 2019, arXiv:1901.10430)
 *
 * Heads share the attending half, and the feed-forward network is as narrow as the model.
 * Equations: variants/model/attention/sublayer_lsra.c. Positions are ALiBi's, as memory requires.
 */
#include "variants/parts/parts.h"

static void lite_sizes(int D, int H, int *dh, int *F)
{
    *dh = max_int(1, D / 2 / H);
    *F = D;
}

const struct variant variant_lite = {
    .name = "lite",
    .paper = "Wu et al. 2020, arXiv:2004.11886",
    .about = "half of the channels attend, half go through a dynamic convolution",
    .control = "alibi",
    .pos = &pos_alibi,
    .sizes = lite_sizes,
    .subs = "lf",
};

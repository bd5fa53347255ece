/* SPDX-License-Identifier: MIT
 *
 * DeLighT: Mehta et al. 2020, "DeLighT: Deep and Light-weight Transformer".
 *
 *   e = dextra([m; x])
 *   y = norm(x + attn(e))
 *   z = norm(y + ffn(y)), F = D/4
 *
 * DExTra widens the D numbers of a row and narrows them to D/2 by group linear transforms, whose
 * outputs are shuffled and concatenated with the row itself: deep, with few parameters. It is
 * deeper and wider towards the output. Attention after it is as narrow as its rows, and the
 * feed-forward network is small. The paper has one head (--heads 1) and adds sinusoids; here
 * positions are ALiBi's, as memory requires. */
#include "variant.h"
#include "variants/parts/parts.h"

static void delight_sizes(int D, int H, int *dh, int *F)
{
    *dh = max_int(1, D / 2 / H);
    *F = max_int(1, D / 4);
}

const struct variant variant_delight = {
    .name = "delight",
    .paper = "Mehta et al. 2020, arXiv:2008.00623",
    .about = "narrow attention after deep group linear transforms, small feed-forward",
    .control = "alibi",
    .pos = &pos_alibi,
    .mem = &mem_segment,
    .ffn = &ffn_relu,
    .qkv_map = &qkv_map_dextra,
    .sizes = delight_sizes,
    .wiring = WIRING_POST,
};

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
 * feed-forward network is small.
 *
 * The paper has one head, adds sinusoids, and keeps no memory: --heads 1 --pos sinusoid --mem 0.
 * Depths grow from N_min to N_max over the layers, and widths from w_m to w_m + (N_max - N_min) /
 * N_min: --set dextra_depth=4:8,dextra_width=2:3. Its own program (--set dextra=code) narrows rows
 * before the group linear transforms, and has fewer parameters than a Transformer of that width;
 * the equations of the paper have as many. By default positions are ALiBi's, as memory requires,
 * and heads as many as elsewhere. */
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
    .qkv_map = &qkv_map_dextra,
    .sizes = delight_sizes,
};

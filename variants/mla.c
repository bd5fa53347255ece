/* SPDX-License-Identifier: MIT
 *
 * Multi-head latent attention: DeepSeek-AI 2024, "DeepSeek-V2: A Strong, Economical, and Efficient
 * Mixture-of-Experts Language Model", section 2.1.
 *
 *   [c'; k'] = W_kva x
 *   c        = rms(c')
 *   k_r      = RoPE(k')              c and k_r are remembered, for all heads
 *   k_h      = [W_uk,h c; k_r]
 *   v_h      = W_uv,h c
 *   q_h      = [q_nope; RoPE(q_r)]
 *
 * Keys and values of all heads are linear in one latent c, so the cache holds dc + dr numbers per
 * token. `expanded` makes them; `absorbed` multiplies queries and outputs by W_uk and W_uv instead,
 * so that the cached rows are the keys and values of a single head (sublayer_latent.c). */
#include "variant.h"
#include "variants/model/sublayer/sublayer.h"
#include "variants/parts/latent.h"

const struct mixer mixer_mla = {.name = "mla",
                                .numbers = &latent_numbers,
                                .kind = &sublayer_latent,
                                .attends = true,
                                /* all heads share the latents */
                                .excludes = EXCLUDES(HAS_UNROTATED, HAS_GROUPS, HAS_ATTN_BIAS)};

/* d = D / H coordinates that are not rotated and as many of values, d / 2 that are. */
static void mla_sizes(int D, int H, int *dh, int *F)
{
    const int d = max_int(1, D / H);

    *dh = d + 2 * max_int(1, d / 4);
    *F = 4 * D;
}

static int mla_d_value(int D, int H, int dh)
{
    (void)D, (void)H;
    return max_int(1, dh - latent_rope(dh));
}

const struct variant variant_mla = {
    .name = "mla",
    .paper = "DeepSeek-AI 2024, arXiv:2405.04434",
    .about = "keys and values of all heads made of one latent per token, which is cached",
    .control = "yarn --rope-scaling none",
    .pos = &pos_rope,
    .mem = &mem_segment,
    .mixer = &mixer_mla,
    .ffn = &ffn_swiglu,
    .wiring = WIRING_PRE,
    .norm_kind = NORM_RMS,
    .sizes = mla_sizes,
    .d_value = mla_d_value,
    .bare_ffn = true,
};

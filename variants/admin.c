/* SPDX-License-Identifier: MIT
 *
 * Admin: Liu et al. 2020, "Understanding the Difficulty of Training Transformers".
 *
 *   y = LN(omega_1 x + attn(x))
 *   z = LN(omega_2 y + ffn(y))
 *
 * omega, a trained vector for each sub-layer, is set before a training from how much the branches
 * below vary, so that deep models with norms after the sum can be trained. Otherwise vanilla.
 * Equations: variants/model/lm/admin.h. */
#include "variants/parts/parts.h"

const struct variant variant_admin = {
    .name = "admin",
    .paper = "Liu et al. 2020, arXiv:2004.08249",
    .about = "as vanilla; a trained vector on each residual branch, set before a training",
    .control = "vanilla",
    .pos = &pos_sinusoid,
    .mem = &mem_prefix,
    .wiring = WIRING_ADMIN,
};

/* SPDX-License-Identifier: MIT
 *
 * The naive recurrence that Dai et al. 2019 ("Transformer-XL", section 3.3) argue against: vanilla
 * with a memory of the segment before, whose absolute positions begin anew with each segment:
 *
 *   h^0_t  = E[token_t] + P[t mod L]
 *   keys and values from [memory; segment], as in Transformer-XL
 *
 * A row of memory and one of the segment have the same positions, L tokens apart, so a query cannot
 * tell which of the two came first. With `--set pos_restart=0` positions count on with the stream. */
#include "variants/parts/parts.h"

const struct variant variant_restart = {
    .name = "restart",
    .paper = "Dai et al. 2019, arXiv:1901.02860, section 3.3",
    .about = "segment recurrence with absolute positions that begin anew: what xl argues against",
    .control = "xl",
    .pos = &pos_sinusoid,
    .pos_restart = true,
};

/* SPDX-License-Identifier: MIT
 *
 * A sliding window, as in the local attention of Child et al. 2019 and Beltagy et al. 2020: in
 * every layer a query sees the w newest keys, its own included. Stacked layers reach N (w - 1)
 * tokens back. Positions are rotary. --mask sets other patterns for this and the other sparse
 * variants. */
#include "variants/parts/parts.h"

const struct variant variant_window = {
    .name = "window",
    .alias = "sparse",
    .paper = "Beltagy et al. 2020, arXiv:2004.05150",
    .about = "the newest 64 keys; --mask for other sparse patterns",
    AS_ROPE,
    .mask = "window=64",
};

/* SPDX-License-Identifier: MIT
 *
 * Dynamic routing between heads: Li et al. 2019, "Information Aggregation for Multi-Head Attention
 * with Routing-by-Agreement".
 *
 *   V_hn  = W_hn o_h
 *
 * and three times, with b_hn = 0 at first:
 *
 *   c_hn  = softmax over n of b_hn
 *   y_n   = squash(sum_h c_hn V_hn)
 *   b_hn += y_n . V_hn
 *
 * In place of W_o, every head votes for every part of the output, and counts for more where it
 * agrees with the sum. Positions are ALiBi's. Equations:
 * variants/model/attention/head_capsules_dynamic.c. */
#include "variants/parts/parts.h"

const struct variant variant_capsules = {
    .name = "capsules",
    .paper = "Li et al. 2019, arXiv:1904.03100",
    .about = "as alibi; heads agree on their output by dynamic routing, in place of W_o",
    .control = "alibi",
    .pos = &pos_alibi,
    .around = {&head_capsules},
};

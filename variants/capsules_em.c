/* SPDX-License-Identifier: MIT
 *
 * EM routing between heads: Hinton, Sabour and Frosst 2018, "Matrix capsules with EM routing", as Li
 * et al. 2019 have it in place of W_o.
 *
 *   V_hn  = W_hn o_h
 *
 * and three times, with R_hn = 1/N at first:
 *
 *   M  mu_n, var_n = mean and variance of the votes V_hn with weights R_hn
 *      a_n         = logistic(lambda (beta_a - cost_n)), cost_n the spread of these votes
 *   E  R_hn        = share of capsule n in the density of V_hn, capsules weighted by a_n
 *
 * The output is a_n mu_n. Equations: variants/model/attention/head_capsules_em.c. */
#include "variants/parts/parts.h"

const struct variant variant_capsules_em = {
    .name = "capsules-em",
    .alias = "capsules_em",
    .paper = "Hinton et al. 2018, openreview HJWLfGWRb; Li et al. 2019, arXiv:1904.03100",
    .about = "as capsules; heads agree by expectation and maximisation",
    .control = "capsules",
    .pos = &pos_alibi,
    .around = {&head_capsules},
    .em_routing = true,
};

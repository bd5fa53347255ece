/* SPDX-License-Identifier: MIT
 *
 * Relative effective context length (Dai et al. 2019, arXiv:1901.02860, section 4.3 and appendix
 * C): how far back a model of a group gains from seeing more. With l_i(c,t) the loss of model i on
 * token t after a context of c tokens,
 *   b(c,t) = min_i l_i(c,t),   T = the share r of tokens with the largest b(c,t)
 *   f_i(c,c') = mean over T of min(b(c,t), l_i(c',t))
 *   g_i(c,c') = 1 - exp(f_i(c,c') - f_i(c,c)),   f_i(c,c) = the mean of b
 * c goes up the lengths that were scored while g_i(c, the next) is at least 0.01; where it stops is
 * the RECL. The losses of a model at chance differ from context to context, too, and some are below b:
 * g is above 0 although nothing is learned. A model whose own mean loss nowhere falls, by the same
 * measure, below that of the shortest context has none. A context of c tokens is c before each segment: a segment of one token has exactly c.
 */
#pragma once

#include "variants/base/base.h"

/* Losses of one model: nll[k] [n] after contexts[k] tokens. */
struct recl_model {
    const float *const *nll;
};

struct recl {
    bool none;   /* its own loss does not fall with more context */
    int length;  /* tokens */
    bool at_end; /* the longest context that was scored still gained: it may be longer */
    double gain; /* g of the first step, from the shortest context */
};

/* `out` [models]. contexts [n_contexts] ascend, two or more; r in (0,1]. E_NOMEM. */
enum status recl_of_group(struct recl *out, const struct recl_model *model, int models,
                          const int *contexts, int n_contexts, size_t n, double r, struct err *e);

/* SPDX-License-Identifier: MIT
 *
 * Admin (Liu et al. 2020, "Understanding the Difficulty of Training Transformers", arXiv:2004.08249,
 * section 4): a trained vector omega [D] on each residual branch, x_i = N(omega_i x_(i-1) + f_i), and
 * the pass before a training that sets it. With all omega at 1 a batch goes forward once; then
 *
 *   omega_i = sqrt(sum over j < i: Var f_j)    in each of its D numbers
 *
 * so that each branch has the share of its layer's output that it would have without norms. The sum
 * is empty for the first one, which stays at 1. An encoder's sub-layers are counted by themselves. */
#pragma once

#include "lm.h"

/* Has it what a profile sets? */
static inline bool admin_profiles(const struct lm *m) { return m->c.wiring == WIRING_ADMIN; }
/* Before the first step of a training: set every omega from tokens [B,L] (with an encoder m->source,
 * too). Memory is read and not written. Models without omega are left as they are. */
void admin_profile(struct lm *m, const struct engine *g, const int32_t *tokens, int B, int L);

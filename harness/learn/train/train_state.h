/* SPDX-License-Identifier: MIT
 *
 * The second file of a checkpoint: what a continuation needs besides the weights. It names the
 * weights that it belongs to by their hash. */
#pragma once

#include "trainer.h"

/* Of all weights. */
uint64_t train_state_hash(const struct params *p);

enum status train_state_save(const struct trainer *t, const char *path, double trained_s,
                             struct err *e);

/* Is this a state that was saved with the weights of `t`, at this step? */
bool train_state_fits(const struct trainer *t, int step, const char *path);

/* Everything but the weights. E_IO names the file and what is wrong in it, also that it does not
 * fit; E_USAGE if `opt` has other values of options that the numbers depend on. */
enum status train_state_load(struct trainer *t, int step, const char *path, struct err *e);

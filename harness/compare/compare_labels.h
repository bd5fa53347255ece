/* SPDX-License-Identifier: MIT
 *
 * Labels of comparisons on a screen: what all of them say is said once, above them. */
#pragma once

#include "compare.h"

/* Take the words that all labels have out of them, in place, and put them into `shared` in the
 * order of the first label. Nothing is taken from a single label, nor if one would be empty. */
void comparisons_share(struct comparison *c, int n, char shared[sizeof(c->label)]);

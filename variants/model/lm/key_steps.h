/* SPDX-License-Identifier: MIT
 *
 * What 8 bits keep of cached keys, whose heads have one step each (q8, elem.h): a number much larger
 * than the others of its head leaves them few steps. */
#pragma once

#include "lm.h"

struct key_steps {
    double steps; /* the root mean square of a head's numbers but its largest, of 127, the largest;
                   * the mean over cached rows. NAN: no keys are cached as floats */
    int attention, head; /* the one that has fewest, each from 1 */
};

/* Of a model that has run, with caches of f32. */
struct key_steps key_steps(const struct lm *m);

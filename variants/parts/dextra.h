/* SPDX-License-Identifier: MIT
 *
 * DExTra, the map of DeLighT, as a list of stages: which there are and how wide they are. */
#ifndef DEXTRA_H
#define DEXTRA_H

#include "variants/variant.h"

enum { MAX_DEXTRA_DEPTH = 30 }; /* group linear transforms of one layer */

/* One group linear transform: in each of `groups` parts, [a_p, b_p] of width (a + b) / groups times
 * a matrix, with a the map's input and b what the stage before gave (0 = not read). */
struct stage {
    char name[16];
    int groups, a, b, out;
    bool reads_x; /* a is x itself; else what the first stage gave */
    bool shuffle, norm, act;
    int param; /* the first of its parameters: weight, bias and the norm's two */
};
struct stages {
    int n;
    struct stage at[MAX_DEXTRA_DEPTH + 2];
};

/* Those of the nth attention of a model. */
struct stages dextra_stages(const struct config *c, int nth);

#endif

/* SPDX-License-Identifier: MIT
 *
 * DExTra, the map of DeLighT, as a list of stages with their widths. */
#ifndef DEXTRA_H
#define DEXTRA_H

#include "variants/variant.h"

enum { MAX_DEXTRA_DEPTH = 30 }; /* most group linear transforms of a layer */

/* One group linear transform: in each of `groups` parts, [a_p, b_p] of width (a + b) / groups times
 * a matrix; a is the map's input, b the output of the stage before (0 = not read). */
struct stage {
    char name[16];
    int groups, a, b, out;
    bool reads_x; /* a is x itself; else the output of the first stage */
    bool shuffle, norm, act;
    int param; /* first of its parameters: weight, bias and the norm's two */
};
struct stages {
    int n;
    struct stage at[MAX_DEXTRA_DEPTH + 2];
};

/* Those of a model's nth attention. */
struct stages dextra_stages(const struct config *c, int nth);

#endif

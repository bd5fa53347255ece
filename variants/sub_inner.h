/* SPDX-License-Identifier: MIT
 *
 * What the forward and backward halves of a sub-layer's wiring share. */
#ifndef SUB_INNER_H
#define SUB_INNER_H

#include "sub.h"

/* Elements from which a pass over them is worth a team. */
enum { WORTH_A_TEAM = 16384 };

/* [m; x] as it entered, after sub_source has joined them. */
struct sub_input sub_entered(const struct sub *s, const float *x, int B, int L);

/* Is f added as it is? Else it is multiplied by sub_factor first: ReZero's alpha or a half. */
bool sub_adds_plainly(const struct sub *s);
float sub_factor(const struct sub *s);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Average attention as a kind of sub-layer: its parts, for its backward pass. */
#ifndef SUBLAYER_AAN_H
#define SUBLAYER_AAN_H

#include "sublayer.h"

/* Parameters, in the order they are added. */
enum { AAN_W1, AAN_B1, AAN_W2, AAN_B2, AAN_GATE, AAN_GATE_BIAS };

/* Its arrays: means [B,L,D], hidden units [B,L,F], g [B,L,D] and gates [B,L,2D]; those of gradients
 * have the same shapes. */
enum { AAN_MU, AAN_HIDDEN, AAN_G, AAN_GATES, AAN_ARRAYS };

static inline bool aan_goes_on(const struct sublayer *s) { return s->mem == MEM_STATE; }
double aan_counted(const struct sublayer *s); /* rows in its sum */
void aan_count_from(struct sublayer *s, int64_t n);

void aan_backward(const struct engine *g, struct sublayer *s, const struct work *w,
                  struct sublayer_input from, float *d_in, const float *d_y, int skip);

#endif

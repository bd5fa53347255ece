/* SPDX-License-Identifier: MIT
 *
 * The instances of every part, named kind_name, and the sinusoid that two of them share. */
#ifndef PARTS_H
#define PARTS_H

#include "../variant.h"

extern const struct pos pos_none, pos_sinusoid, pos_learned_layer, pos_shaw, pos_xl;
extern const struct gate gate_gru, gate_input, gate_output, gate_highway, gate_sigtanh,
    gate_residual;
extern const struct ffn ffn_relu;
extern const struct mem mem_segment, mem_none;

/* Sinusoid code of one position into row [D], D even: frequencies
 * w_f = 10000^(-2f/D), angles in double because a float angle at distance 4000 is off by 2e-4. */
void sinusoid_row(float *row, int D, int position, enum sinusoid order);

#endif

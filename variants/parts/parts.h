/* SPDX-License-Identifier: MIT
 *
 * The instances of every part, named kind_name, and functions that tests or other parts share. */
#ifndef PARTS_H
#define PARTS_H

#include "variants/variant.h"

extern const struct pos pos_none, pos_sinusoid, pos_learned, pos_learned_layer, pos_shaw, pos_xl,
    pos_alibi, pos_t5, pos_kerple, pos_rope;
extern const struct pos pos_tupe, pos_deberta;
extern const struct mixer mixer_synth_dense, mixer_synth_random;
extern const struct pos extra_talking, extra_span, extra_persistent; /* struct config: more */
extern const struct gate gate_gru, gate_input, gate_output, gate_highway, gate_sigtanh,
    gate_residual;
extern const struct ffn ffn_relu, ffn_gelu, ffn_gelu_tanh, ffn_swish;            /* ffn.c */
extern const struct ffn ffn_glu, ffn_reglu, ffn_geglu, ffn_swiglu, ffn_bilinear; /* ffn_gated.c */
extern const struct ffn ffn_moe;
extern const struct qkv_map qkv_dextra;
extern const struct mem mem_compressive, mem_segment, mem_state, mem_none;
extern const struct mixer mixer_linear_elu, mixer_favor, mixer_favor_hyp, mixer_aan;

/* Sinusoidal encoding of one position into row [D], D even, with frequencies w_f = 10000^(-2f/D).
 * Angles are double because a float angle at distance 4000 is off by 2e-4. */
void sinusoid_row(float *row, int D, int position, enum sinusoid order);

/* Slope of head h of H. */
double alibi_slope(int h, int H);
/* Bucket of distance n >= 0, in [0, buckets). */
int t5_bucket(int n, int buckets, int max_distance);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Every part of each kind: KIND_NAME is defined in a file of this folder, and NAME is a word of the
 * list here; the registries are made of these lists. A variant's file includes it. */
#pragma once

#include "variants/variant.h"

/* clang-format off */
#define GATES(X) \
    X(gru) X(input) X(output) X(highway) X(sigtanh) X(residual)
#define FFNS(X) \
    X(relu) X(gelu) X(gelu_tanh) X(swish) X(glu) X(reglu) X(geglu) X(geglu_tanh) X(swiglu) X(bilinear) \
    X(moe) X(proto) X(hash) X(pkm) X(swish_norm) X(rwkv6) X(rwkv7) X(none)
#define POSITIONS(X) \
    X(none) X(sinusoid) X(learned) X(learned_layer) X(shaw) X(xl) X(rope) X(alibi) X(t5) \
    X(kerple) X(tupe) X(deberta) X(tener) X(gaussian) X(hardcoded) X(freq) X(floater) \
    X(complex) X(recent)
#define MIXERS(X) \
    X(linear_elu) X(based) X(favor) X(favor_hyp) X(favor_trig) X(favor_relu) X(aan) X(synth_dense) \
    X(synth_random) X(retnet) X(lightning) X(gla) X(mamba) X(mamba2) X(deltanet) X(gdn) X(kda) \
    X(gdn2) X(pgdn) X(pkda) X(gsa) X(comba) X(deltaproduct) X(gated_deltaproduct) X(mlstm) \
    X(hgrn2) X(rwkv6) X(rwkv7) X(mingru) X(rglru) X(shortconv) X(mla) X(linformer) X(mca) X(tree) X(nystrom) X(pooling) X(etc) X(isab) \
    X(collab) X(routing) X(lsh) X(sinkhorn) X(clustered) X(informer)
/* struct config: attn_extra */
#define EXTRAS(X) \
    X(talking) X(persistent) X(span) X(sink) X(sigmoid) X(stickbreaking) X(softpick)
/* clang-format on */
#define QKV_MAPS(X) X(dextra)
#define MEMS(X) X(none) X(prefix) X(segment) X(compressive) X(state) X(sum) X(hybrid)

#define X(name) extern const struct gate gate_##name;
GATES(X)
#undef X
#define X(name) extern const struct ffn ffn_##name;
FFNS(X)
#undef X
#define X(name) extern const struct pos pos_##name;
POSITIONS(X)
#undef X
#define X(name) extern const struct mixer mixer_##name;
MIXERS(X)
#undef X
#define X(name) extern const struct pos extra_##name;
EXTRAS(X)
#undef X
#define X(name) extern const struct qkv_map qkv_map_##name;
QKV_MAPS(X)
#undef X
#define X(name) extern const struct mem mem_##name;
MEMS(X)
#undef X

/* Sinusoidal encoding of one position into row [D], D even, with frequencies w_f = 10000^(-2f/D).
 * Angles are double because a float angle at distance 4000 is off by 2e-4. */
void sinusoid_row(float *row, int D, int64_t position, enum sinusoid order);

/* Slope of head h of H. */
double alibi_slope(int h, int H);
/* Bucket of distance n >= 0, in [0, buckets). */
int t5_bucket(int n, int buckets, int max_distance);

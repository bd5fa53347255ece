/* SPDX-License-Identifier: MIT
 *
 * What readers of tests' own golden files share: single parts, layers, and what is made of them. Each
 * is a struct golden_kind of kinds.c; those that users have are in harness/check/. */
#pragma once

#include "harness/check/golden.h"
#include "tests/support/members.h"

extern const struct golden_kind golden_mixer, golden_channel_mix, golden_norm, golden_ffn,
    golden_map, golden_rnn, golden_funnel, golden_layer, golden_cross, golden_hier, golden_seq2seq;

/* A part of a model, in c: `sizes` are those of D, H, d (d_head) and F that the file must give. Else
 * it has one head, D wide, and F is D. With H the file may give the scale of scores. Without a
 * variant it has no positions. Then batch, seq and mem. */
enum status golden_part(struct run *r, const struct variant *v, const char *sizes, struct err *e);
/* Metadata ln_eps. */
enum status golden_eps(struct run *r, struct err *e);
/* In the names of parameters from `first` on, put `to` in place of `from`, where that occurs. */
void params_rename(struct params *p, int first, const char *from, const char *to);
/* Place parameters and their gradients, d_x, and `n` numbers of y. */
void golden_bind_part(struct run *r, size_t n);

/* Layers without memory, and their attention, norms and sums. */
enum status golden_bind_layers(struct run *r, struct err *e);
void golden_backward_layers(struct run *r);

/* Compare what the sub-layer's last forward pass shows: which keys it saw, and its arrays. */
void golden_shown(struct run *r, const struct sublayer *s, const struct work *w);

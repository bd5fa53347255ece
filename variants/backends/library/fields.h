/* SPDX-License-Identifier: MIT
 *
 * Members that structs of benchattn.h share with those of the kernels, name by name, for copies in both
 * directions; what differs stands where it is copied. */
#pragma once

/* clang-format off */
#define SAME_IN_ATTENTION(X) \
    X(B) X(H) X(L) X(M) X(K) X(dh) X(dv) X(window) X(R) X(Rf) X(causal) X(q) X(k) X(v) X(u) X(w) \
    X(rel_k) X(rel_v) X(rel_q) X(rel_head) X(bias) X(bias_head) X(o) X(lse) X(base) X(mask_of_head) \
    X(window_of_head) X(q_step) X(k_step) X(q_first) X(no_content) X(soft_cap) X(scores_out) X(gain) \
    X(mix_logits) X(mix_probs) X(sinks) X(sink_k) X(sink_v) X(sink_logit)
#define SAME_IN_ATTENTION_GRAD(X) \
    X(d_o) X(d_scores_out) X(d_q) X(d_k) X(d_v) X(d_u) X(d_w) X(d_rel_k) X(d_rel_v) X(d_rel_q) X(d_bias) \
    X(d_add) X(d_fade) X(d_mix_logits) X(d_mix_probs) X(d_sink_k) X(d_sink_v) X(d_sink_logit)
#define SAME_IN_MASK(X) \
    X(window) X(dilation) X(block) X(back) X(memory) X(stride) X(fixed) X(summary) X(global) X(rect_rows) \
    X(rect) X(row) X(margin_rows) X(margin) X(n_random) X(random_blocks) X(random_from) X(random) X(rows) \
    X(row_words)
#define SAME_IN_RECURRENCE(X) \
    X(B) X(L) X(M) X(H) X(dk) X(dv) X(g_width) X(norm) X(u) X(s0) X(z0) X(m0) X(s1) X(z1) X(m1) X(o) \
    X(den)
#define ROWS_IN_RECURRENCE(X) X(q) X(k) X(v) X(g) X(beta) X(a) X(b) X(i)
#define SAME_IN_RECURRENCE_GRAD(X) \
    X(d_o) X(d_s1) X(d_q) X(d_k) X(d_v) X(d_g) X(d_beta) X(d_a) X(d_b) X(d_u) X(d_i) X(d_s0) X(d_z0)
/* clang-format on */

#define SAME(field) .field = x->field,

/* SPDX-License-Identifier: MIT
 *
 * Attention as a kind of sub-layer: its parts, for those who look inside (its backward pass, and
 * the check of golden files that have the bare operator). */
#ifndef SUB_ATTENTION_H
#define SUB_ATTENTION_H

#include "sub.h"

/* Parameters of attention, in the order they are added. Biases exist where attn_bias is set; the
 * position scheme's follow. */
enum { ATTN_Q, ATTN_K, ATTN_V, ATTN_O, ATTN_WEIGHTS };

/* Its arrays: [B,L,H,dh] [B,K,Hkv,dh] [B,K,Hkv,dh] [B,L,H,dh] and, for backward, [B,H,L]; keys and
 * values of MEM_KV are projected straight into the caches. Those of gradients are alike, with the
 * tables' in the last place. */
enum { AT_Q, AT_K, AT_V, AT_O, AT_LSE, AT_D_TABLES = AT_LSE };

/* Rows of memory that it holds now. */
int attention_memory(const struct sub *s);
/* Position in the stream of the first key: tokens seen before it. */
int64_t attention_base(const struct sub *s);

/* Let the position scheme rotate the rows of `heads` heads, the first at `position`. */
void attention_rotate(const struct engine *g, const struct sub *s, struct seq_rows x, int B,
                      int rows, int heads, int64_t position, bool back);

/* The attention of these source rows, projected and ready to run: q, k, v and o point at the
 * results. attention_operands is the same once more, without projecting. */
struct attn attention_project(const struct engine *g, struct sub *s, struct work *w,
                              struct sub_input from);
struct attn attention_operands(const struct sub *s, const struct work *w, int B, int L);

/* f = W_o o + b_o, once the implementation has filled o; it goes on to `leave`. */
void attention_unproject(const struct engine *g, const struct sub *s, struct work *w, int rows,
                         struct act leave);

/* The backward half, sub_attention_grad.c. */
void attention_backward(const struct engine *g, struct sub *s, const struct work *w,
                        struct sub_input from, float *d_in, const float *d_y, int skip);
double attention_grad_flop(const struct sub *s, int B, int L, int M);

/* The attention of `c` for these sizes without operands: dims, mask and scale. */
struct attn attn_of_config(const struct config *c, int B, int L, int M);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Attention as a kind of sub-layer: its parts, for those who look inside (its backward pass, and
 * the check of golden files that have the bare operator). */
#ifndef SUBLAYER_ATTENTION_H
#define SUBLAYER_ATTENTION_H

#include "sublayer_project.h"
#include "variants/parts/terms.h"

/* Its arrays: [B,L,H,dh] [B,K,Hkv,dh] [B,K,Hkv,dh] [B,L,H,dh] and, for backward, [B,H,L]; keys and
 * values of MEM_KV are projected straight into the caches. Those of gradients are alike, with the
 * tables' in the last place. AT_SCORES: [B,H,L,K] what is carried to the next attention.
 * AT_POOLED: [B,L/2,D] the rows that it asks from, where they are means. */
enum { AT_Q, AT_K, AT_V, AT_O, AT_LSE, AT_BEFORE, AT_SCORES, AT_POOLED, AT_D_TABLES = AT_LSE };

/* `a`, lowered, for L source rows behind M of memory. */
void attention_resize(const struct sublayer *s, struct attn *a, int L, int M);
/* Rows that ask, of L source rows. */
static inline int attention_asking(const struct sublayer *s, int L) { return s->pools ? L / 2 : L; }

/* Width of the rows that q, k and v are projected from: D, or what the map in front of them says.
 */
int attention_width(const struct config *c);

/* Rows of memory that it holds now. */
int attention_memory(const struct sublayer *s);
/* Position in the stream of the first key: tokens seen before it. */
int64_t attention_base(const struct sublayer *s);

/* Let the position scheme rotate the rows of `heads` heads, the first at `position`. */
void attention_rotate(const struct engine *g, const struct sublayer *s, struct seq_rows x, int B,
                      int rows, int heads, int64_t position, bool back);

/* Source rows behind the map in front of q, k and v, sublayer_attention_map.c; where there is none,
 * they are what they were. Its arrays and FLOP. */
struct sublayer_input attention_mapped(const struct engine *g, const struct sublayer *s,
                                       const struct work *w, struct sublayer_input from);
struct array attention_map_array(const struct sublayer *s, struct extent max);
struct array attention_map_array_grad(const struct sublayer *s, struct extent max);
double attention_map_flop(const struct sublayer *s, double rows);

/* What enters its scores, sublayer_attention_terms.c: parameters of the schemes; carried scores, in
 * `asked` (the attention to find an implementation for), in one that runs, in its gradient; the
 * attention whose FLOP count. */
struct term_params attention_term_params(const struct sublayer *s);
size_t attention_scores_floats(const struct sublayer *s, struct extent max);
struct attn attention_asked(const struct sublayer *s);
void attention_score_residual(const struct sublayer *s, const struct work *w, struct attn *a);
void attention_score_residual_grad(const struct sublayer *s, const struct work *w,
                                   const struct attn *a, struct attn_grad *d);
struct attn attention_costed(const struct sublayer *s, int B, int L, int M);

/* The attention of these source rows, projected and ready to run: q, k, v and o point at the
 * results. attention_operands is the same once more, without projecting. */
struct attn attention_project(const struct engine *g, struct sublayer *s, struct work *w,
                              struct sublayer_input from);
struct attn attention_operands(const struct sublayer *s, const struct work *w, int B, int L);

/* f = W_o o + b_o, once the implementation has filled o; it goes on to `leave`. */
void attention_unproject(const struct engine *g, const struct sublayer *s, struct work *w, int rows,
                         struct act epilogue);

/* The backward half, sublayer_attention_grad.c: the latter from the rows that q, k and v were
 * projected from. */
void attention_backward(const struct engine *g, struct sublayer *s, const struct work *w,
                        struct sublayer_input from, float *d_in, const float *d_y, int skip);
void attention_backward_projections(const struct engine *g, struct sublayer *s,
                                    const struct work *w, struct sublayer_input from, float *d_in,
                                    const float *d_y, int skip);
double attention_grad_flop(const struct sublayer *s, int B, int L, int M);

/* Why kernels that know plain terms only leave a model's attention to composed products; NULL =
 * they do not. */
const char *attention_refusal(const struct engine *g, const struct config *c);

/* The attention of `c` for these sizes without operands: dims, mask and scale. */
struct attn attn_of_config(const struct config *c, int B, int L, int M);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Attention as a kind of sub-layer: its parts, for its backward pass and for the check of golden
 * files of the bare operator. */
#pragma once

#include "around.h"
#include "variants/model/sublayer/sublayer_project.h"
#include "variants/parts/terms.h"

/* Resize `a`, whose tables are built, to L source rows after M of memory. */
void attention_resize(const struct sublayer *s, struct attn *a, int L, int M);
/* Query rows of L source rows. */
static inline int attention_query_rows(const struct sublayer *s, int L)
{
    return s->pools ? (L + !s->c->causal) / 2 : L;
}

/* Width of the rows that q, k and v are projected from: D, or that of qkv_map. */
int attention_width(const struct config *c);

/* How many of M remembered rows it keeps: no more than a query of its layer can see; and how many
 * of these are ever seen. */
int attention_kept(const struct sublayer *s, int M);
int attention_needed(const struct sublayer *s, int M);

/* Slots as positions, sublayer_attention_streaming.c: its array; the attention that executes the
 * call `a`, whose rows are not rotated; one with which to select an implementation. */
struct array streaming_array(const struct sublayer *s, struct extent max);
struct attn streaming_attn(const struct engine *g, const struct sublayer *s, const struct work *w,
                           const struct attn *a);
struct attn streaming_for_impl(const struct attn *a);

/* With MEM_KV the caches of keys, of values and of what is remembered beside them: rows of `width`
 * numbers each, 0 = there is none; rows of the last call become memory; none are left. */
void attention_caches_bind(struct sublayer *s, struct extent max, int kept, const int width[3],
                           struct arena *a);
void attention_commit(struct sublayer *s, int L);
void attention_forget(struct sublayer *s);

/* Current rows of memory. */
int attention_memory(const struct sublayer *s);
/* Stream position of the first key. */
int64_t attention_base(const struct sublayer *s);

/* Let the position scheme rotate rows of `heads` heads of `width` floats, from x on, the first row
 * at `position`; of the model's own heads, unless slots are their positions. */
void attention_turn(const struct engine *g, const struct sublayer *s, struct seq_rows x, int B,
                    int rows, int heads, int width, int64_t position, bool back);
void attention_rotate(const struct engine *g, const struct sublayer *s, struct seq_rows x, int B,
                      int rows, int heads, int64_t position, bool back);

/* Source rows after qkv_map (sublayer_attention_map.c), or unchanged if there is none; _again: as
 * the last attention_mapped left them. Its arrays and FLOP. */
struct sublayer_input attention_mapped(const struct engine *g, const struct sublayer *s,
                                       const struct work *w, struct sublayer_input from);
struct sublayer_input attention_mapped_again(const struct sublayer *s, const struct work *w,
                                             struct sublayer_input from);
struct array attention_map_array(const struct sublayer *s, struct extent max);
struct array attention_map_array_grad(const struct sublayer *s, struct extent max);
double attention_map_flop(const struct sublayer *s, double rows);

/* Terms of its scores, sublayer_attention_terms.c: parameters of the schemes; an attention with
 * which to select an implementation; the scores that a call has from another layer or leaves for
 * one, and their gradient; an attention
 * with which to count FLOP. */
struct term_params attention_term_params(const struct sublayer *s);
size_t attention_scores_floats(const struct sublayer *s, struct extent max);
struct attn attention_for_impl(const struct sublayer *s);
void attention_score_residual(const struct sublayer *s, const struct work *w, struct attn *a);
void attention_score_residual_grad(const struct sublayer *s, const struct work *w,
                                   const struct attn *a, struct attn_grad *d);
struct attn attention_for_flop(const struct sublayer *s, int B, int L, int M);

/* The attention of these source rows, projected and ready to run: q, k, v and o point at the
 * results. attention_operands returns it again, without projecting. */
struct attn attention_project(const struct engine *g, struct sublayer *s, struct work *w,
                              struct sublayer_input from);
struct attn attention_operands(const struct sublayer *s, const struct work *w, int B, int L);

/* Run the implementation on them: all maps of the heads (head_diff.c), and their difference. */
void attention_core(const struct engine *g, const struct sublayer *s, const struct work *w,
                    const struct attn *a);

/* f = W_o o + b_o, once the implementation has filled o, followed by `epilogue`; `from` as for
 * attention_project. */
void attention_unproject(const struct engine *g, const struct sublayer *s, struct work *w,
                         struct sublayer_input from, struct act epilogue);

/* A call of B sequences of L new rows as its parts see it; the rows that W_o reads. */
struct part_call attention_call(const struct engine *g, const struct sublayer *s,
                                const struct work *w, int B, int L);
const float *attention_output(const struct part_call *all);

/* Backward, sublayer_attention_grad.c; _projections: given the rows that q, k and v were projected
 * from. */
void attention_backward(const struct engine *g, struct sublayer *s, const struct work *w,
                        struct sublayer_input from, float *d_in, const float *d_y, int skip);
void attention_backward_projections(const struct engine *g, struct sublayer *s,
                                    const struct work *w, struct sublayer_input from, float *d_in,
                                    const float *d_y, int skip);
double attention_grad_flop(const struct sublayer *s, int B, int L, int M);

/* The attention of sublayer_read for its largest shape, with which to choose an implementation. */
struct attn sublayer_read_attn(const struct sublayer *s);

/* The attention of `c` for these sizes without operands: dimensions, mask and scale. */
struct attn attn_of_config(const struct config *c, int B, int L, int M);

/* Long-short range attention, sublayer_lsra.c: the model as its attention sees it, as narrow as its
 * share of the channels. */
struct config lsra_attention(const struct config *c);

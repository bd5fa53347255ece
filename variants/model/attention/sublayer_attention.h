/* SPDX-License-Identifier: MIT
 *
 * Attention as a kind of sub-layer: its parts, for its backward pass and for the check of golden
 * files of the bare operator. */
#ifndef SUBLAYER_ATTENTION_H
#define SUBLAYER_ATTENTION_H

#include "variants/model/sublayer/sublayer_project.h"
#include "variants/parts/terms.h"

/* Its arrays: [B,L,H,dh] [B,K,Hkv,dh] [B,K,Hkv,dh] [B,L,H,dh] and, for backward, [B,H,L]; with
 * MEM_KV keys and values are projected directly into the caches, or, where these are narrower,
 * those of new rows on their way there. Those of gradients have the same shapes, with the tables'
 * last. AT_SCORES: [B,H,L,K] score residual for the next attention. AT_POOLED: [B,L/2,D] query
 * rows, if they are means. AT_AROUND, AT_V0: what is done around the core,
 * around.h. AT_SLOTS: queries and keys rotated by slots. */
enum {
    AT_Q,
    AT_K,
    AT_V,
    AT_O,
    AT_LSE,
    AT_QKV_MAP,
    AT_SCORES,
    AT_POOLED,
    AT_AROUND,
    AT_V0,
    AT_SLOTS,
    AT_D_TABLES = AT_LSE
};

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

/* The sizes of a call of L new rows (around.h). */
struct around_call attention_call(const struct sublayer *s, int B, int L);

/* Backward, sublayer_attention_grad.c; _projections: given the rows that q, k and v were projected
 * from. */
void attention_backward(const struct engine *g, struct sublayer *s, const struct work *w,
                        struct sublayer_input from, float *d_in, const float *d_y, int skip);
void attention_backward_projections(const struct engine *g, struct sublayer *s,
                                    const struct work *w, struct sublayer_input from, float *d_in,
                                    const float *d_y, int skip);
double attention_grad_flop(const struct sublayer *s, int B, int L, int M);

/* Why kernels with only plain terms cannot run a model's attention; NULL: they can. */
const char *attention_refusal(const struct engine *g, const struct config *c);

/* The attention of sublayer_read for its largest shape, with which to choose an implementation. */
struct attn sublayer_read_attn(const struct sublayer *s);

/* The attention of `c` for these sizes without operands: dimensions, mask and scale. */
struct attn attn_of_config(const struct config *c, int B, int L, int M);

#endif

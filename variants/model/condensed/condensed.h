/* SPDX-License-Identifier: MIT
 *
 * Attention to fewer keys than there are tokens: what its forms have in common. Keys and values of
 * a call are rows [rows before; new ones]. Complete groups of `size` tokens, aligned with the
 * stream and all of them remembered, become `rows` far rows each; their maps are the forms' own.
 * MEM_KV caches far rows, and plain ones of the group that is not complete. */
#pragma once

#include "variants/model/sublayer/sublayer_project.h"

/* Arrays: queries [B,L,H,dh], keys and values of all rows [B,M+L,Hkv,dh] unless they are cached,
 * outputs, log-sum-exps; far rows [B,room,Hkv,dh] unless they are cached. Those of gradients have
 * the same shapes. CO_FORM and what follows is a form's own. */
enum { CO_Q, CO_K, CO_V, CO_O, CO_LSE, CO_FAR_K, CO_FAR_V, CO_FORM };

/* Groups of tokens, and the rows that one becomes; `beside`: plain rows of a group that stand
 * behind the far ones while its queries are served. */
struct grouping {
    int size, rows;
    bool beside;
};

/* The rows of a call. */
struct stretch {
    struct seq_rows k, v;         /* [B,rows,Hkv*dh] */
    int rows;                     /* all; the new ones are the last */
    int64_t first;                /* stream position of the first */
    struct seq_rows far_k, far_v; /* [B,room,Hkv*dh]: n_far rows of groups before the first row */
    int n_far;
};

/* Rows before the first whole group. */
int stretch_lead(const struct stretch *t, int size);

/* The weights behind those of the projections. */
static inline const struct param *condensed_weights(const struct sublayer *s)
{
    return s->weights + project_n_params(s);
}

int condensed_keeps(const struct sublayer *s, enum mem_kind mem, int M);
/* Count or place the caches. */
void condensed_bind(struct sublayer *s, struct grouping of, struct extent max, struct arena *a);
/* Floats that they hold for each sequence. */
size_t condensed_cached(const struct sublayer *s, struct grouping of, int M);

/* The arrays before CO_FORM; size 0: there are no far rows. */
void condensed_arrays(const struct sublayer *s, struct grouping of, struct extent max,
                      struct array out[SUB_ARRAYS]);

/* Project keys and values of the source rows, and queries of the new ones if asked; the rows of the
 * call. _again: without projecting, after a forward pass that kept them. */
struct stretch condensed_project(const struct engine *g, struct sublayer *s, const struct work *w,
                                 struct sublayer_input from, struct grouping of, bool queries);
struct stretch condensed_again(const struct sublayer *s, const struct work *w,
                               struct sublayer_input from, struct grouping of);

/* From d_y to the gradient of the outputs, and from those of q, k and v to d_in. */
void condensed_out_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                        const float *d_y, int rows);
void condensed_in_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                       struct sublayer_input from, float *d_in, int skip);

/* Gradients of rows: 0; the first `rows` rows of each sequence added to others. */
void condensed_clear(struct seq_rows x, int B);
void condensed_add(struct seq_rows to, struct seq_rows from, int B, int rows, int width);

/* Rows of the last call become memory. */
void condensed_commit(struct sublayer *s, int L);
void condensed_forget(struct sublayer *s);

/* Work space of the implementation that runs state.attention.prepared. */
struct attn_need condensed_scratch(const struct sublayer *s, const struct engine *g, bool backward);

/* FLOP of the four projections of L new rows after M. */
double condensed_maps_flop(const struct sublayer *s, int B, int L, int M);

/* What their kinds have in common. */
#define CONDENSED                                                                                  \
    .memory = "mem", .mixes = true, .attends = true, .place = DROP_ATTENTION,                      \
    .keeps = condensed_keeps, .scratch = condensed_scratch, .commit = condensed_commit,            \
    .forget = condensed_forget

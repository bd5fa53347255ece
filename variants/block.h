/* SPDX-License-Identifier: MIT
 *
 * One layer: two sub-layers (attention, feed-forward), each wired into the stream by post-norm,
 * pre-norm or the reordered gated form. */
#ifndef BLOCK_H
#define BLOCK_H

#include "parts/cache.h"
#include "parts/dropout.h"
#include "variant.h"

/* How M tokens of past reach the layer. */
enum mem_kind { MEM_NONE, MEM_HIDDEN, MEM_KV, MEM_RECOMPUTE, MEM_KIND_COUNT };
extern const char *const mem_kind_name[MEM_KIND_COUNT]; /* "" "hidden" "kv" "recompute" */

/* The largest shape that a bound layer or model can run. */
struct extent {
    int B, L, M;
};

/* Work space shared by the layers of a model; they run one after the other. */
struct work {
    float *n;             /* [B,K,D] normalised input of attention (pre, reorder) */
    float *q, *k, *v, *o; /* [B,L,H,dh] [B,K,H,dh] [B,K,H,dh] [B,L,H,dh] */
    float *y;             /* [B,L,D] sub-layer output */
    float *n2;            /* [B,L,D] normalised input of the FFN, or the post-norm stream */
    float *mid;           /* [B,L,D] the stream between the sub-layers; NULL = in the result */
    float *hidden;        /* [B*L,F] */
    float *gate;          /* [B*L, gate->work * D] */
    float *y2, *gate2;    /* the same for the second sub-layer; y and gate unless kept */
    void *attn;           /* the attention implementation's scratch */
    float *codes;         /* the position scheme's constant codes */
    /* Kept for backward; NULL at inference, which then writes everything over the stream. */
    float *lse;         /* [B,H,L] */
    float *x;           /* [B,L,D] the layer's input */
    float *sum1, *sum2; /* [B,L,D] inputs of LN1 and LN2 (post) */
    struct dropout drop;
};

/* Work space of backward, shared by the layers. */
struct work_grad {
    float *d_y, *d_t; /* [B,L,D] of a sub-layer's output and input */
    float *d_n;       /* [B,K,D] of the input of attention */
    float *d_q, *d_k, *d_v, *d_o;
    float *d_hidden; /* [B*L,F] */
    float *gate;     /* [B*L, gate->work_grad * D] */
    float *stats;    /* of norm_grad */
    float *tables;   /* of the position scheme */
    void *attn;      /* scratch of the attention implementation's backward */
};

/* A layer's weights, as pointers to the first parameter of each part. */
struct block {
    const struct config *c;
    const struct param *model, *ln1, *attn, *pos, *gate1, *ln2, *ff, *gate2;
    struct attn lowered; /* tables and terms for the largest shape; q, k, v, o unset */
    const struct attn_impl *impl;
    struct cache hidden, keys, values; /* which are used depends on mem_kind */
};

/* Append the layer's parameters under `prefix` ("layers.3."). Returns the index of the first. */
int block_params(const struct config *c, const char *prefix, struct params *p);
/* Only those of attention and positions: the bare operator, which block_project and block_unproject
 * run. */
int block_operator_params(const struct config *c, const char *prefix, struct params *p);

/* Point `b` at its parameters, given the index from block_params or block_operator_params. */
void block_attach(struct block *b, const struct config *c, const struct params *p, int model_first,
                  int first);

/* Count or place tables and caches; choose the attention implementation. */
enum status block_bind(struct block *b, const struct engine *g, enum mem_kind kind,
                       struct extent max, struct arena *a, struct err *e);
void work_bind(struct work *w, const struct engine *g, const struct block *b, enum mem_kind kind,
               struct extent max, struct arena *a);

/* A layer's own work space for training: what its backward pass reads is kept until then. The first
 * layer keeps its share in `shared` itself. */
void work_bind_kept(struct work *w, const struct work *shared, bool first, const struct block *b,
                    enum mem_kind kind, struct extent max, struct arena *a);
/* E_UNSUPPORTED where the layer's attention cannot run backward. */
enum status work_grad_bind(struct work_grad *w, const struct engine *g, const struct block *b,
                           struct extent max, struct arena *a, struct err *e);
/* Every array becomes NaN, so that what backward reads without having written it shows. */
void work_grad_spoil(struct work_grad *w, const struct block *b, struct extent max);

/* Fill the position tables: once the weights have their values, and again when they change. */
void block_lower(const struct engine *g, struct block *b, const struct work *w);

/* The attention of input x [B,L,D] and the remembered rows, projected and ready to run: x joins the
 * memory, is normalised where the wiring asks for it, and q, k, v and o point at the results. */
struct attn block_project(const struct engine *g, struct block *b, enum mem_kind kind,
                          struct work *w, const float *x, int B, int L);

/* y [B,L,D] = W_o o (without its bias), after the implementation has filled w->o. */
void block_unproject(const struct engine *g, const struct block *b, const struct work *w, float *y,
                     int B, int L);
const float *block_output_bias(const struct block *b); /* [D] or NULL */

/* z [B,L,D] = block(x [B,L,D]), with the M rows of memory that the caches hold. The new rows are
 * written behind the memory but not committed: block_commit makes them memory. z may be x; x itself
 * is changed by schemes that add positions to a layer's input. */
void block_forward(const struct engine *g, struct block *b, enum mem_kind kind, struct work *w,
                   float *z, float *x, int B, int L);
void block_commit(struct block *b, enum mem_kind kind, int L);

/* After block_forward with kept work space, x having been w->x, and before block_commit: turn d
 * [B,L,D] from the gradient of z into that of x, and add to the gradients of all weights. Memory is
 * a constant, its rows count for the weights that act on them. */
void block_backward(const struct engine *g, struct block *b, enum mem_kind kind,
                    const struct work *w, struct work_grad *d_w, float *d, int B, int L);

/* The same for attention with its projections alone, from d_y [B,L,D] of block_unproject's y (with
 * its bias). d_in is [B,L,D] of the input rows in a post-norm wiring, else [B,M+L,D]: of the
 * normalised rows. */
void block_attention_backward(const struct engine *g, struct block *b, enum mem_kind kind,
                              const struct work *w, struct work_grad *d_w, float *d_in,
                              const float *d_y, int B, int L);

/* Make the layer inputs x [B,rows,D] its newest memory, as if they had been run: kept as they are
 * or projected to keys and values. rows <= the bound L. */
void block_remember(const struct engine *g, struct block *b, enum mem_kind kind, struct work *w,
                    const float *x, int B, int rows);

/* Useful FLOP of one call of a bound block with M rows of memory: the matrix products,
 * each visible pair once. Lowering, norms, softmax and additions are not counted. */
double block_flop(const struct block *b, enum mem_kind kind, int B, int L, int M);

/* The same for backward. */
double block_grad_flop(const struct block *b, enum mem_kind kind, int B, int L, int M);

/* The attention of `c` for these sizes without operands: dims, mask and scale. */
struct attn attn_of_config(const struct config *c, int B, int L, int M);

#endif

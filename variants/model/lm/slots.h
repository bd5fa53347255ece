/* SPDX-License-Identifier: MIT
 *
 * Slots (Wu et al. 2020, "Memformer", arXiv:2010.06891): S rows of a model that summarise any
 * number of earlier segments, or each of the last S of them (slots_mean.c). Every layer reads them (sublayer_read.c); after a
 * segment each slot attends to itself and to the segment's rows h, as the output reads them,
 * forgets towards a trained row v_j and is made as long as 1:
 *
 *   s_j  = [q_j . k_j ; q_j . K_h] scale / temperature
 *   o_j  = softmax(s_j) [v_j ; V_h]
 *   m'_j = unit(W_o o_j + bias_j)                          at first unit(bias_j)
 *
 * The write is a plain loop, because no two slots have the same keys. With bptt the gradient of a
 * segment also reaches the writes after the segments before it, up to `replay` of them, which are
 * run again: their rows of memory, if there are any, are constants. A call is a segment. */
#pragma once

#include "drive.h"

/* A segment of before. All that it holds lies in one block, which a continuation carries on. */
struct past_head {
    int32_t L, begins; /* the slots that it began with are the first */
    struct dropout drop;
};
struct past_segment {
    struct past_head *head;
    int32_t *tokens; /* [B,L] */
    float *slots;    /* [B,S,D] that it began with */
    float **rows;    /* [sub-layers] memory [B,M,D] of each, NULL = none */
    int32_t *n_rows; /* [sub-layers] */
    int64_t *seen;   /* [sub-layers] */
};
struct past_ring {
    int32_t n, newest;
};

struct slots {
    const struct config *c;
    struct sublayers *sublayers;
    const struct param *w; /* bias, W_q, W_k, W_v, W_o; of slots_mean.c bias and its own */
    enum mem_kind mem;
    struct extent max;
    float *now;             /* [B,S,D] carried; zeros = none yet */
    float *used;            /* [B,S,D] read by the last forward */
    float *next;            /* [B,S,D] written by it */
    bool begins;            /* used are the first */
    float *h;               /* [B,L,D] what was written from */
    float *length;          /* [B,S] before the unit */
    float *q, *ks, *vs, *o; /* [B,S,H dh] */
    float *k, *v;           /* [B,L,Hkv dh] */
    float *p;               /* [B,H,S,1+L] */
    float *mean, *hidden;   /* [B,D] of slots_mean.c */
    int32_t *tokens;        /* [B,L] of the last forward */
    /* Training only. */
    float *d; /* [B,S,D] gradient of used, gathered by those who read them */
    float *d_next, *d_r, *d_q, *d_ks, *d_vs, *d_o, *d_k, *d_v, *d_h, *kept;
    struct past_segment *past; /* [replay] in a ring, then room for the present */
    struct past_ring *ring;
    float *block; /* [n_block] the ring and its segments */
    size_t n_block;
};

/* The i-th array that is carried on; false after the last. */
bool slots_carries(const struct slots *t, int i, struct carried *out);

/* ---- for its parts -------------------------------------------------------------------------- */

enum { S_BIAS, S_Q, S_K, S_V, S_O };

static inline size_t slot_floats(const struct slots *t, int B)
{
    return (size_t)B * (size_t)t->c->slots.n * (size_t)t->c->D;
}
static inline bool slots_mean(const struct config *c) { return c->slots.write == SLOTS_MEAN; }
/* y [n] = x / |x|; returns |x|. Back: d <- (d - (d.y) y) / length. */
float slots_unit(float *y, const float *x, int n);
void slots_unit_grad(float *d, const float *y, float length, int n);
/* One row for each segment, slots_mean.c: t->next of t->h [B,L,D]; from d_next to d_h and to what is
 * added to d. d_r and d_q have the gradients of the new row and of what it is made of. */
void slots_mean_params(const struct config *c, struct params *p);
void slots_mean_write(struct slots *t, const struct engine *g, int B, int L);
void slots_mean_grad(struct slots *t, const struct engine *g, int B, int L);
double slots_mean_flop(const struct config *c, int B, int L);
enum status slots_bind_grad(struct lm *m, const struct engine *g, struct arena *a, struct err *e);
void slots_free(struct lm *m);
void slots_backward(struct lm *m, const struct engine *g, const int32_t *target, int B, int L);
void slots_replay(struct lm *m, const struct engine *g, int B, int L);
void slots_commit(struct lm *m, int L);
void slots_forget(struct lm *m);

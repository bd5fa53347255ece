/* SPDX-License-Identifier: MIT
 *
 * Slots (Wu et al. 2020, "Memformer", arXiv:2010.06891): S rows of a model that summarise any
 * number of earlier segments. Every layer reads them (sublayer_read.c); after a
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
#ifndef SLOTS_H
#define SLOTS_H

#include "variants/model/sublayer/sublayer_list.h"

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
    const struct param *w; /* bias, W_q, W_k, W_v, W_o */
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
    int32_t *tokens;        /* [B,L] of the last forward */
    /* Training only. */
    float *d; /* [B,S,D] gradient of used, gathered by those who read them */
    float *d_next, *d_r, *d_q, *d_ks, *d_vs, *d_o, *d_k, *d_v, *d_h, *kept;
    struct past_segment *past; /* [replay] in a ring, then room for the present */
    struct past_ring *ring;
    float *block; /* [n_block] the ring and its segments */
    size_t n_block;
};

/* Declare the weights. Returns the index of the first, -1 = none. */
int slots_params(const struct config *c, struct params *p);
/* Count or place; `sublayers` must be bound. _grad: additionally for training. E_NOMEM. */
void slots_bind(struct slots *t, const struct config *c, struct sublayers *sublayers,
                const struct params *p, int at, struct extent max, struct arena *a);
enum status slots_bind_grad(struct slots *t, struct arena *a, struct err *e);
void slots_free(struct slots *t);

/* Before the layers run: what they read. After them: what is written, from t->h [B,L,D]. */
void slots_enter(struct slots *t, const int32_t *tokens, int B, int L);
void slots_write(struct slots *t, const struct engine *g, int B, int L);
/* From d_next to d_h [B,L,D] and to what is added to d; accumulates weight gradients. */
void slots_write_grad(struct slots *t, const struct engine *g, int B, int L);
/* From d to the trained rows, where the slots used are the first. */
void slots_first_grad(struct slots *t, int B);

void slots_commit(struct slots *t, const struct dropout *drop, int L);
void slots_forget(struct slots *t);

/* The i-th segment of the past, the newest first; NULL after the last. */
const struct past_segment *slots_past(const struct slots *t, int i);
/* The i-th array that is carried on; false after the last. */
bool slots_carries(const struct slots *t, int i, struct carried *out);

/* Put away the present, go to the i-th segment of the past, and back: slots and rows of memory. */
void slots_leave(struct slots *t, const struct dropout *drop, int B, int L);
void slots_go(struct slots *t, int i, int B);
void slots_return(struct slots *t, int B);

double slots_flop(const struct slots *t, int B, int L);

#endif

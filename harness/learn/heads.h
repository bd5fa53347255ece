/* SPDX-License-Identifier: MIT
 *
 * What the heads of a trained model attend to, as `bench eval --attention` writes it. */
#ifndef HEADS_H
#define HEADS_H

#include "variants/backends/watch.h"

struct heads {
    struct attn_watch watch;
    struct head *head; /* [n] of all attentions, each one's together, in the order of first calls */
    size_t n;
    double *before;         /* [H,L,keys] of the call before */
    double *now;            /* likewise of this one: the room for the next `before` */
    int H, L, keys;         /* of `before`; H = 0: none in this pass */
    struct attn_place last; /* likewise */
    int from;               /* first query that counts */
    bool watching;          /* from heads_pass to heads_seen */
    enum status st;         /* E_NOMEM */
};

/* Watches the attention that `g` binds from now on, in the first sequence of a batch. */
void heads_watch(struct heads *h, struct engine *g);
/* A forward pass begins; queries of its tokens from `from` on count. */
void heads_pass(struct heads *h, int from);
/* The pass is over: E_UNSUPPORTED if it had no attention, E_NOMEM. */
enum status heads_seen(struct heads *h, struct err *e);
/* Has a layer, from 0, been seen? */
bool heads_has(const struct heads *h, int layer);
/* A CSV file with a row for each head of each attention, in the order in which the model runs them,
 * means over the queries of all passes (docs/scoring.md has the columns). */
enum status heads_write(const struct heads *h, const char *path, struct err *e);
void heads_free(struct heads *h);

#endif

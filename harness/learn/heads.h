/* SPDX-License-Identifier: MIT
 *
 * What the heads of a trained model attend to, as `bench eval --attention` writes it. */
#ifndef HEADS_H
#define HEADS_H

#include "variants/backends/watch.h"

struct heads {
    struct attn_watch watch;
    struct head *head; /* [n] of all calls of attention of a pass, one after the other */
    size_t n;
    size_t at;      /* the first head of the next call */
    double *before; /* [H,L,keys] of the call before */
    double *now;    /* likewise of this one: the room for the next `before` */
    int H, L, keys; /* of `before`; H = 0: none */
    int calls;
    bool watching;  /* from heads_pass to heads_seen */
    enum status st; /* E_NOMEM */
};

/* Watches the attention that `g` binds from now on, in the first sequence of a batch. */
void heads_watch(struct heads *h, struct engine *g);
/* A forward pass begins: the next call is the model's first. */
void heads_pass(struct heads *h);
/* The pass is over: E_UNSUPPORTED if it had no attention, E_NOMEM. */
enum status heads_seen(struct heads *h, struct err *e);
/* A CSV file with a row for each head of each attention, in the order in which the model runs them,
 * means over the queries of all passes (docs/quality.md has the columns). */
enum status heads_write(const struct heads *h, const char *path, struct err *e);
void heads_free(struct heads *h);

#endif

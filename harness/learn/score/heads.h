/* SPDX-License-Identifier: MIT
 *
 * What the heads of a trained model attend to, as `bench eval --attention` writes it. */
#pragma once

#include "variants/model/lm/lm.h"

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
/* A CSV file with a row for each head of each attention, in the order in which the model runs them,
 * means over the queries of all passes (docs/scoring.md has the columns). */
enum status heads_write(const struct heads *h, const char *path, struct err *e);
/* Add to a text, which may be empty, the layers of a model that mix tokens, but not by probabilities of keys. */
void heads_note(char *note, size_t size, const struct lm *m, const struct heads *h);
void heads_free(struct heads *h);

/* SPDX-License-Identifier: MIT
 *
 * Plays episodes of a task with a model, as many at once as a batch has. What is remembered from
 * segment to segment is the caller's: it commits, or shows the model past observations again. */
#pragma once

#include "harness/learn/source/corpus.h"
#include "task.h"

#include "variants/model/lm/lm.h"

struct player {
    struct task task;
    int B;         /* episodes at once */
    uint64_t seed; /* of the actions that are drawn */
    const struct engine *engine;
    struct episode *episodes; /* [B] */
    double *returns;          /* [B] so far */
    int32_t *seen, *done;     /* [B,length] of this episode */
    int32_t *actions;         /* [B,steps] of the latest call of player_steps */
    float *rewards;           /* likewise */
    int32_t *tokens;          /* room for what the model reads at once */
};

/* Symbols of a model that plays it: its observations, and logits of the actions with the value
 * behind them. */
int player_symbols(const struct task *t);
/* E_UNSUPPORTED for a model without logits of its own. */
enum status player_check(const struct lm *m, struct err *e);

/* Room for all but the tokens; `steps` is the most of a call of player_steps. */
void player_bind(struct player *p, int steps, struct arena *a);

/* Episodes batch * B and on of a split. */
void player_begin(struct player *p, enum split split, uint64_t batch);
/* Observation `at` of all episodes. */
void player_look(struct player *p, int at);
/* The outputs of the last `scored` of the observations [from,to). */
void player_think(struct player *p, struct lm *m, int from, int to, int scored);
/* Steps [at,at+n) of all episodes, which see `past` observations before them again. Actions are
 * drawn by number: that of the step among all of this stream. */
void player_steps(struct player *p, struct lm *m, int at, int n, int past, const char *stream,
                  uint64_t batch);

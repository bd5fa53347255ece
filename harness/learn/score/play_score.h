/* SPDX-License-Identifier: MIT
 *
 * The mean return of a checkpoint that has learnt a task. */
#pragma once

#include "harness/cli/options.h"
#include "harness/learn/task/task.h"

/* The task that a checkpoint has learnt, as text; "" where it learnt a text, or cannot be read. */
void play_task_of(const char *ckpt, char task[KEYED_TEXT]);

struct play_score {
    char task[KEYED_TEXT], variant[32], backend[32];
    int64_t step; /* of the training; I64_EMPTY = unknown */
    int episodes;
    double mean, low, high; /* of the return, with its 95 % interval */
    double random, optimum; /* of policies: at random, and the best */
    bool exact;             /* the optimum is reached by some policy; otherwise it is a bound */
};

/* Is a mean return nine tenths of the way from actions at random to the best policy? */
bool play_solved(double mean, double random, double optimum);

/* --episodes of the checkpoint --ckpt, none of which it was trained on. Actions are drawn from its
 * policy, by the seed of the task. A model sees as far back as in its training. E_IO, E_UNSUPPORTED, E_INTERRUPTED. */
enum status play_score(struct play_score *out, const struct options *o, struct err *e);

/* One episode, step by step. */
struct played {
    int length;
    int32_t *seen, *done; /* [length] what the agent saw, and the action it took then */
    float *rewards;       /* [length] */
};

/* The episode numbered --seed of those that play_score begins with, played by --ckpt. Free in any
 * case. */
enum status play_episode(struct played *out, const struct options *o, struct err *e);
void played_free(struct played *p);

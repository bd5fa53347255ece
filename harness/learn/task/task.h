/* SPDX-License-Identifier: MIT
 *
 * Memory tasks of reinforcement learning: "NAME:key=value,...". Each is a row of the table of tasks
 * (task.c); its file says what it is. What an agent sees and does in a step is one symbol each, and
 * all episodes of a task have the same length. An episode is a function of (seed, its number, the
 * actions), so it is the same on every machine, and can begin again anywhere.
 *
 * task/ holds the tasks and how a model plays them; its loss is here, its training in train/. */
#pragma once

#include "harness/learn/source/keyed.h"
#include "variants/base/rng.h"

struct task_kind;
struct task {
    const struct task_kind *kind;
    double value[KEYED_KEYS]; /* of its keys */
    uint64_t seed;
};

enum { EPISODE_STATE = 5 }; /* no gaps: episodes are compared by their bytes */
struct episode {
    uint64_t seed, number;
    int32_t t; /* steps taken */
    int32_t v[EPISODE_STATE];
};

/* Does the text name a task? */
bool task_named(const char *text);
/* The i-th task as it is usually written, and what it is, in a few words; false after the last. */
bool task_listed(int i, char text[KEYED_TEXT], const char **about);
/* E_USAGE for what there is not or cannot be. */
enum status task_parse(struct task *t, const char *text, struct err *e);

int task_length(const struct task *t);  /* steps of an episode */
int task_actions(const struct task *t); /* actions are from 0 to below this, all always allowed */
int task_symbols(const struct task *t); /* so are observations */

/* Begin episode `number` of the stream `seed`. */
void task_begin(const struct task *t, struct episode *e, uint64_t seed, uint64_t number);
/* What the agent sees before its next action. */
int task_observe(const struct task *t, const struct episode *e);
/* One action; returns its reward. */
double task_step(const struct task *t, struct episode *e, int action);

/* Mean return of an episode, exact. */
double task_random(const struct task *t); /* of actions at random */
/* Of the best policy of what it has seen and done. `exact` false: a bound that no policy exceeds. */
double task_optimum(const struct task *t, bool *exact);

/* By enumeration of all that can happen; *best, if not NULL, is the best first action after the
 * `n` observations and actions of a history (n actions, n + 1 observations), and the return is of
 * what remains. NAN if the history cannot be. */
double task_enumerated(const struct task *t, const int32_t *seen, const int32_t *done, int n,
                       int *best);

/* ---- for the files that define a task ------------------------------------------------------- */

struct task_kind {
    const char *name, *about;
    struct keyed_key keys[KEYED_KEYS]; /* without a name: none */
    /* E_USAGE if the values do not go together; NULL = all do. */
    enum status (*check)(const struct task *t, struct err *e);
    int (*length)(const struct task *t);
    int (*actions)(const struct task *t);
    int (*symbols)(const struct task *t);
    /* Episodes begin in one of so many ways, all as likely, and draw nothing later. NULL: they draw
     * by their number, and random and optimum are given. */
    int (*starts)(const struct task *t);
    void (*begin)(const struct task *t, struct episode *e, int start);
    int (*observe)(const struct task *t, const struct episode *e);
    double (*step)(const struct task *t, struct episode *e, int action); /* e->t is still before */
    double (*random)(const struct task *t);
    double (*optimum)(const struct task *t, bool *exact);
};

extern const struct task_kind task_tmaze, task_numpad, task_catch, task_bandit;

static inline int task_int(const struct task *t, int key) { return (int)t->value[key]; }

/* SPDX-License-Identifier: MIT
 *
 * A task of reinforcement learning, for the files that define one. */
#ifndef TASK_KIND_H
#define TASK_KIND_H

#include "task.h"

#include "variants/base/rng.h"

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

#endif

/* SPDX-License-Identifier: MIT
 *
 * catch:delay=N,width=W. A ball that falls straight down is shown in the first step only, in one of
 * W columns. The paddle stands in the middle; it is locked for the N steps that follow, and then has
 * the (W - 1) / 2 steps that the farthest column takes: left, stay, right. 1 if it is under the ball
 * at the end, else 0. The paddle's way tells nothing about the ball before it moves, so without
 * memory the return is that of chance, 1 / W. */
#include "task.h"

enum { DELAY, WIDTH };
enum { BALL, PADDLE };

static int width(const struct task *t) { return task_int(t, WIDTH); }
static int moves(const struct task *t) { return (width(t) - 1) / 2; }
static int locked(const struct task *t) { return 1 + task_int(t, DELAY); }
static int length(const struct task *t) { return locked(t) + moves(t); }

static int actions(const struct task *t) { return 3; }

/* The ball in each column; hidden and locked; the paddle in each column. */
static int symbols(const struct task *t) { return 2 * width(t) + 1; }

static enum status check(const struct task *t, struct err *e)
{
    if (width(t) % 2 == 0)
        return fail(e, E_USAGE, "a width of %d has no middle  -> use an odd width", width(t));
    return OK;
}

static void begin(const struct task *t, struct episode *e, int start)
{
    e->v[BALL] = start;
    e->v[PADDLE] = width(t) / 2;
}

static int observe(const struct task *t, const struct episode *e)
{
    return e->t == 0 ? e->v[BALL] : e->t < locked(t) ? width(t) : width(t) + 1 + e->v[PADDLE];
}

static double step(const struct task *t, struct episode *e, int action)
{
    if (e->t >= locked(t))
        e->v[PADDLE] = clamp_int(e->v[PADDLE] + action - 1, 0, width(t) - 1);
    return e->t == length(t) - 1 && e->v[PADDLE] == e->v[BALL] ? 1 : 0;
}

const struct task_kind task_catch = {
    .name = "catch",
    .about = "a ball that is seen once, `delay` steps, then the way below it",
    .keys = {{"delay", 5, 0, 4096, false, NULL}, {"width", 5, 3, 63, false, NULL}},
    .check = check,
    .length = length,
    .actions = actions,
    .symbols = symbols,
    .starts = width,
    .begin = begin,
    .observe = observe,
    .step = step,
};

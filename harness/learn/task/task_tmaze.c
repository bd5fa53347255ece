/* SPDX-License-Identifier: MIT
 *
 * tmaze:len=N. A cue, left or right; N steps of corridor, where actions do nothing; a junction,
 * where the side of the cue gives 1 and the other -1 (Bakker 2002, in the passive form of Ni et al.
 * 2023). Without memory of the cue the return is 0. */
#include "task.h"

enum { LEN };
enum { CORRIDOR = 2, JUNCTION, SYMBOLS };
enum { CUE };

static int length(const struct task *t) { return task_int(t, LEN) + 2; }

static int two(const struct task *t) { return 2; }

static int symbols(const struct task *t) { return SYMBOLS; }

static void begin(const struct task *t, struct episode *e, int start) { e->v[CUE] = start; }

static int observe(const struct task *t, const struct episode *e)
{
    return e->t == 0 ? e->v[CUE] : e->t < length(t) - 1 ? CORRIDOR : JUNCTION;
}

static double step(const struct task *t, struct episode *e, int action)
{
    if (e->t < length(t) - 1)
        return 0;
    return action == e->v[CUE] ? 1 : -1;
}

const struct task_kind task_tmaze = {
    .name = "tmaze",
    .about = "a cue, `len` steps of corridor, a junction where the cue says the way",
    .keys = {{"len", 20, 0, 4096, false, NULL}},
    .length = length,
    .actions = two,
    .symbols = symbols,
    .starts = two,
    .begin = begin,
    .observe = observe,
    .step = step,
};

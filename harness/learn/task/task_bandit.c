/* SPDX-License-Identifier: MIT
 *
 * bandit:arms=A,len=T. Each arm pays 1 with a probability that an episode draws from [0,1]; the
 * agent sees which arm it has pulled and what it paid. The optimum is that of Bayes, by dynamic
 * programming over wins and losses of two arms (a beta posterior each); with more arms, or longer
 * episodes, the bound is the best arm's mean, A / (A + 1) a pull. */
#include "task.h"

enum { ARMS, LEN };
enum { SEEN };
enum { LONGEST = 128 }; /* of the dynamic programme: T^3 numbers */

static int arms(const struct task *t) { return task_int(t, ARMS); }
static int length(const struct task *t) { return task_int(t, LEN); }
static int symbols(const struct task *t) { return 2 * arms(t) + 1; }

static void begin(const struct task *t, struct episode *e, int start) { e->v[SEEN] = 2 * arms(t); }

static int observe(const struct task *t, const struct episode *e) { return e->v[SEEN]; }

static double step(const struct task *t, struct episode *e, int action)
{
    const double p = rng_uniform(e->seed, rng_stream("task.bandit.arm"),
                                 e->number * (uint64_t)arms(t) + (uint64_t)action);
    const double x = rng_uniform(e->seed, rng_stream("task.bandit.pull"),
                                 e->number * (uint64_t)length(t) + (uint64_t)e->t);
    const bool paid = x < p;

    e->v[SEEN] = 2 * action + paid;
    return paid;
}

/* The mean of an arm is 1/2, whichever is pulled. */
static double at_random(const struct task *t) { return 0.5 * length(t); }

/* Of pulling an arm with w wins and l losses, then going on as `win` or `loss` say. */
static double pulled(int w, int l, double win, double loss)
{
    const double p = (w + 1.0) / (w + l + 2.0);

    return p * (1 + win) + (1 - p) * loss;
}

/* value[w1][l1][w2] of what remains after n pulls, l2 = n - w1 - l1 - w2; backward from n = T. */
static double two_arms(int T)
{
    const size_t side = (size_t)T + 2;
    double *const v = need_room(side * side * side, sizeof(*v));

#define V(w1, l1, w2) v[((size_t)(w1)*side + (size_t)(l1)) * side + (size_t)(w2)]
    /* V of n + 1 pulls is read at equal or higher places only, which n has not written yet. */
    for (int n = T - 1; n >= 0; n--)
        for (int w1 = 0; w1 <= n; w1++)
            for (int l1 = 0; w1 + l1 <= n; l1++)
                for (int w2 = 0; w1 + l1 + w2 <= n; w2++) {
                    const int l2 = n - w1 - l1 - w2;
                    const double a = pulled(w1, l1, V(w1 + 1, l1, w2), V(w1, l1 + 1, w2));
                    const double b = pulled(w2, l2, V(w1, l1, w2 + 1), V(w1, l1, w2));
                    V(w1, l1, w2) = a > b ? a : b;
                }
    const double value = V(0, 0, 0);
#undef V
    free(v);
    return value;
}

static double optimum(const struct task *t, bool *exact)
{
    *exact = arms(t) == 2 && length(t) <= LONGEST;
    if (*exact)
        return two_arms(length(t));
    return (double)length(t) * arms(t) / (arms(t) + 1);
}

const struct task_kind task_bandit = {
    .name = "bandit",
    .about = "arms that pay by chances of the episode: which is the best?",
    .keys = {{"arms", 10, 2, 255, false, NULL}, {"len", 100, 1, 4096, false, NULL}},
    .length = length,
    .actions = arms,
    .symbols = symbols,
    .begin = begin,
    .observe = observe,
    .step = step,
    .random = at_random,
    .optimum = optimum,
};

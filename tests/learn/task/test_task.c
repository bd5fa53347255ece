/* SPDX-License-Identifier: MIT
 *
 * Tasks of reinforcement learning: their texts, episodes that begin again, exact returns against
 * closed forms and simulation, and policies that see only what an agent sees. */
#include "harness/learn/task/task.h"
#include "tests/support/failure.h"

static struct task parsed(const char *text)
{
    struct task t;

    MUST(task_parse(&t, text, &failure));
    return t;
}

static double optimum(const char *text)
{
    const struct task t = parsed(text);
    bool exact;
    const double v = task_optimum(&t, &exact);

    cr_expect(exact, "%s", text);
    return v;
}

static double at_random(const char *text)
{
    const struct task t = parsed(text);

    return task_random(&t);
}

Test(task, text_is_read_or_refused)
{
    char text[KEYED_TEXT];
    const char *about;
    struct task t;
    int n = 0;

    cr_expect(task_named("tmaze:") && !task_named("tmaze") && !task_named("maze:"));
    for (; task_listed(n, text, &about); n++) {
        cr_expect_eq(task_parse(&t, text, &failure), OK, "%s", failure.msg);
        cr_expect(about[0]);
    }
    cr_expect_eq(n, 4);
    EACH_TEXT (bad, "tmaze:len=-1", "tmaze:n=2", "catch:width=4", "catch:delay=", "numpad:n=4",
               "numpad:n=1", "numpad:len=0", "bandit:arms=1", "bandit:arms=2.5") {
        REFUSED(task_parse(&t, bad, &failure), E_USAGE, bad, "  -> ");
    }
}

/* ---- exact returns -------------------------------------------------------------------------- */

Test(task, returns_have_their_closed_forms)
{
    enum { DIGITS = 1000 }; /* sums of some thousand terms below 1 */
    const double eps = DIGITS * 2.3e-16;

    NUMBERS({at_random("tmaze:len=20"), 0, eps}, {optimum("tmaze:len=0"), 1, eps},
            {optimum("tmaze:len=1000"), 1, eps}, {at_random("catch:delay=5,width=5"), 1 / 5.0, eps},
            {at_random("catch:delay=0,width=7"), 1 / 7.0, eps},
            {optimum("catch:delay=5,width=5"), 1, eps},
            {optimum("catch:delay=100,width=63"), 1, eps});
    /* One pull pays 1/2. After a win the same arm has mean 2/3, after a loss the other has 1/2. */
    cr_expect_float_eq(optimum("bandit:arms=2,len=1"), 0.5, eps);
    cr_expect_float_eq(optimum("bandit:arms=2,len=2"), 0.5 + 0.5 * 2 / 3 + 0.5 * 0.5, eps);
    /* Of the 8 paths of 2 x 2, two begin at each pad. One step: either neighbour of pad 0. Two: if
     * the first was wrong, the way back meets pad 0 with 1/3, as the far pad does; if it was right,
     * the path goes on to either neighbour. */
    cr_expect_float_eq(optimum("numpad:n=2,len=1"), 0.25, eps);
    cr_expect_float_eq(optimum("numpad:n=2,len=2"), 0.25 * (1 + 0.5) + 0.75 / 3, eps);
    /* At random, 2 of 5 actions step on a pad. */
    cr_expect_float_eq(at_random("numpad:n=2,len=1"), 2 / 5.0 / 4, eps);
}

Test(task, bandit_of_many_arms_has_a_bound)
{
    const struct task t = parsed("bandit:arms=9,len=10");
    bool exact = true;

    NUMBERS({task_optimum(&t, &exact), 9, 1e-14}, {task_random(&t), 5, 1e-14});
    cr_expect_not(exact);
}

/* ---- policies ------------------------------------------------------------------------------- */

/* The next action from n + 1 observations and n actions. */
typedef int (*policy)(const struct task *t, const int32_t *seen, const int32_t *done, int n,
                      uint64_t episode);

static int any(const struct task *t, const int32_t *seen, const int32_t *done, int n,
               uint64_t episode)
{
    return (int)(rng_u32(99, episode, (uint64_t)n) % (uint32_t)task_actions(t));
}

static int cue(const struct task *t, const int32_t *seen, const int32_t *done, int n,
               uint64_t episode)
{
    return seen[0];
}

/* Towards the column of the ball; the last W symbols are the paddle's. */
static int follow(const struct task *t, const int32_t *seen, const int32_t *done, int n,
                  uint64_t episode)
{
    const int W = (task_symbols(t) - 1) / 2, paddle = seen[n] - W - 1;

    return paddle < 0 ? 1 : 1 + (seen[0] > paddle) - (seen[0] < paddle);
}

static int enumerate(const struct task *t, const int32_t *seen, const int32_t *done, int n,
                     uint64_t episode)
{
    int best = -1;

    cr_assert(!isnan(task_enumerated(t, seen, done, n, &best)));
    return best;
}

/* Thompson's: the arm whose draw of the posterior, beta(w + 1, l + 1) by the w + 1 smallest of
 * w + l + 1 uniform numbers, is the largest. */
static int thompson(const struct task *t, const int32_t *seen, const int32_t *done, int n,
                    uint64_t episode)
{
    const int A = task_actions(t);
    double most = -1;
    int best = 0;

    for (int a = 0; a < A; a++) {
        double u[256];
        int won = 0, pulls = 0;
        for (int i = 0; i < n; i++) {
            pulls += done[i] == a;
            won += done[i] == a && seen[i + 1] % 2;
        }
        for (int i = 0; i <= pulls; i++) {
            const double x = rng_uniform(
                7, episode, ((uint64_t)n * (uint64_t)A + (uint64_t)a) * 256 + (uint64_t)i);
            int k = i;
            for (; k > 0 && u[k - 1] > x; k--)
                u[k] = u[k - 1];
            u[k] = x;
        }
        if (u[won] > most) {
            most = u[won];
            best = a;
        }
    }
    return best;
}

/* Mean return, and the standard error of it. */
static double simulated(const struct task *t, policy act, int episodes, double *error)
{
    const int L = task_length(t);
    int32_t *const seen = room(2 * (size_t)L, sizeof(*seen)), *const done = seen + L;
    double sum = 0, squares = 0;

    for (int k = 0; k < episodes; k++) {
        struct episode e;
        double total = 0;
        task_begin(t, &e, 3, (uint64_t)k);
        for (int i = 0; i < L; i++) {
            seen[i] = task_observe(t, &e);
            cr_assert(seen[i] >= 0 && seen[i] < task_symbols(t));
            done[i] = act(t, seen, done, i, (uint64_t)k);
            total += task_step(t, &e, done[i]);
        }
        sum += total;
        squares += total * total;
    }
    const double mean = sum / episodes;
    *error = sqrt(fmax(0, squares / episodes - mean * mean) / episodes);
    return mean;
}

/* Four standard errors: one run in 16,000 would leave them, and the seeds are fixed. */
static void expect_return(const char *text, policy act, int episodes, double want)
{
    const struct task t = parsed(text);
    double error;
    const double got = simulated(&t, act, episodes, &error);

    cr_expect(fabs(got - want) <= 4 * error + 1e-12, "%s: %g +- %g, not %g", text, got, error,
              want);
}

Test(task, simulation_at_random_agrees_with_the_exact_return)
{
    EACH_TEXT (text, "tmaze:len=3", "catch:delay=2,width=7", "numpad:n=2,len=30",
               "numpad:n=3,len=40", "bandit:arms=5,len=20")
        expect_return(text, any, 20000, at_random(text));
}

Test(task, a_policy_of_what_was_seen_reaches_the_optimum)
{
    expect_return("tmaze:len=40", cue, 1000, optimum("tmaze:len=40"));
    expect_return("catch:delay=9,width=9", follow, 1000, optimum("catch:delay=9,width=9"));
    expect_return("numpad:n=2,len=12", enumerate, 400, optimum("numpad:n=2,len=12"));
    expect_return("tmaze:len=2", enumerate, 50, 1);
    expect_return("catch:delay=1,width=5", enumerate, 50, 1);
}

/* Whatever the policy, it stays below; Thompson's comes near. */
Test(task, bandit_is_between_thompson_and_the_bound)
{
    const struct task t = parsed("bandit:arms=2,len=50"), ten = parsed("bandit:arms=10,len=100");
    bool exact;
    double error;
    const double best = task_optimum(&t, &exact), bound = task_optimum(&ten, &exact);
    const double two = simulated(&t, thompson, 4000, &error);

    cr_expect(two <= best + 4 * error && two >= 0.94 * best, "%g of %g", two, best);
    const double all = simulated(&ten, thompson, 400, &error);
    cr_expect(all <= bound + 4 * error && all >= 0.75 * bound, "%g of %g", all, bound);
}

/* ---- episodes ------------------------------------------------------------------------------- */

Test(task, episodes_begin_again_and_differ)
{
    char text[KEYED_TEXT];
    const char *about;

    for (int i = 0; task_listed(i, text, &about); i++) {
        const struct task t = parsed(text);
        double sum[3] = {0};
        int differ = 0;
        for (int k = 0; k < 40; k++) {
            struct episode a, b, c, other;
            task_begin(&t, &a, 1, (uint64_t)k);
            task_begin(&t, &b, 1, (uint64_t)k);
            task_begin(&t, &other, 2, (uint64_t)k);
            for (int s = 0; s < task_length(&t); s++) {
                const int action = any(&t, NULL, NULL, s, (uint64_t)k);
                cr_assert_eq(task_observe(&t, &a), task_observe(&t, &b));
                differ += task_observe(&t, &a) != task_observe(&t, &other);
                if (s == task_length(&t) / 2)
                    c = a; /* an episode is its value */
                const double r = task_step(&t, &a, action);
                sum[0] += r;
                sum[1] += task_step(&t, &b, action);
                differ += r != task_step(&t, &other, action);
                if (s >= task_length(&t) / 2)
                    sum[2] += r - task_step(&t, &c, action);
            }
        }
        cr_expect(sum[0] == sum[1] && sum[2] == 0, "%s", text);
        cr_expect_gt(differ, 0, "%s", text);
    }
}

/* SPDX-License-Identifier: MIT
 *
 * Sides that stop together: the rounds of a comparison, on two launches per side. */
#include "tests/support/failure.h"
#include "tests/support/fake_target.h"

TestSuite(measure_rounds);

enum { ROUNDS = 15, MOST = MAX_REPEATS * ROUNDS, LAUNCHES = 2, BOTH = 2 };

/* The side and launch of a block. */
struct launch {
    struct table *table;
    int side, number;
};

/* Two sides, block by block. */
struct table {
    struct launch launch[BOTH][LAUNCHES];
    double call_ns[BOTH];
    int blocks;        /* so far, warm-up included */
    int disturb_every; /* blocks; 0 = none */
    int fail_at;       /* block of side 1 that fails, 0 = none */
    int first[BOTH];   /* how often a side was the first of a round */
    int met[LAUNCHES][LAUNCHES];
    int number[BOTH]; /* launch of this round */
    int started;      /* rounds */
    uint32_t calls[BOTH];
    int done[BOTH];
};

static enum status block(void *ctx, uint32_t calls, bool prime, struct sample *x, struct err *e)
{
    const struct launch *const l = ctx;
    struct table *const t = l->table;

    x->wall_ns = x->cpu_ns = t->call_ns[l->side] * calls;
    t->calls[l->side] = calls;
    t->number[l->side] = l->number;
    t->blocks++;
    x->involuntary_switches = t->disturb_every && t->blocks % t->disturb_every == 0;
    if (l->side == 1 && t->fail_at && t->blocks >= t->fail_at)
        return fail(e, E_CHILD, "killed");
    return OK;
}

static enum status note(void *arg, int side, const struct sample *s, const struct outcome *o,
                        struct err *e)
{
    struct table *const t = arg;

    if (!s) {
        t->done[side]++;
        return OK;
    }
    cr_assert_lt(s->round, MOST);
    if ((int)s->round < t->started) { /* the second of the round */
        t->met[t->number[0]][t->number[1]]++;
    } else {
        t->first[side]++;
        t->started = (int)s->round + 1;
    }
    return OK;
}

static enum status run(struct table *t, struct outcome out[BOTH])
{
    struct schedule s = usual_schedule;
    struct side side[BOTH];

    s.rounds = ROUNDS;
    s.warmup_ms = 0;
    s.gap_ms = 0;
    for (int i = 0; i < BOTH; i++) {
        side[i] = (struct side){.block = block, .launches = LAUNCHES};
        for (int k = 0; k < LAUNCHES; k++) {
            t->launch[i][k] = (struct launch){t, i, k};
            side[i].launch[k] = &t->launch[i][k];
        }
    }
    return measure(side, BOTH, &s, note, t, out, &failure);
}

Test(measure_rounds, as_many_as_wanted)
{
    struct table t = {.call_ns = {1e6, 0.5e6}};
    struct outcome out[BOTH];

    cr_assert_eq(run(&t, out), OK);
    for (int i = 0; i < BOTH; i++) {
        cr_expect(out[i].stop == STOP_ROUNDS && out[i].samples == ROUNDS && t.done[i] == 1);
        cr_expect_gt(t.first[i], 2, "side %d was first %d times", i, t.first[i]);
        for (int k = 0; k < LAUNCHES; k++)
            cr_expect_gt(t.met[i][k], 2, "launches %d and %d met %d times", i, k, t.met[i][k]);
    }
    cr_expect_eq(t.calls[0], 10, "blocks of at least 5 ms on the faster side");
    cr_expect_eq(t.calls[1], 10, "and as many calls on the other");
}

Test(measure_rounds, disturbed_ones_are_repeated)
{
    struct table t = {.call_ns = {1e6, 1e6}, .disturb_every = 6}; /* every third round */
    struct outcome out[BOTH];

    cr_assert_eq(run(&t, out), OK);
    cr_expect(out[0].samples > ROUNDS && out[0].samples < 2 * ROUNDS, "%d", out[0].samples);
    cr_expect_eq(out[0].samples, out[1].samples);
}

/* After MOST - ROUNDS + 1 disturbed rounds the rest is too few. */
Test(measure_rounds, hopeless_ones_end)
{
    struct table t = {.call_ns = {1e6, 1e6}, .disturb_every = 1};
    struct outcome out[BOTH];

    cr_assert_eq(run(&t, out), OK);
    NUMBERS({out[0].samples, MOST - ROUNDS + 1}, {out[0].stop, STOP_ROUNDS});
}

Test(measure_rounds, a_failure_ends_them_for_all)
{
    struct table t = {.call_ns = {1e6, 1e6}, .fail_at = 20};
    struct outcome out[BOTH];

    cr_assert_eq(run(&t, out), OK);
    NUMBERS({out[1].stop, STOP_FAILED}, {out[1].status, E_CHILD}, {out[0].stop, STOP_ROUNDS},
            {t.done[0], 1}, {t.done[1], 1});
    cr_expect_leq(out[0].samples - out[1].samples, 1);
}

/* SPDX-License-Identifier: MIT
 *
 * The measuring loop over fake targets: warm-up, calibration, stopping, rounds, trouble. */
#include "tests/support/fake_target.h"

#include "harness/measure/stats.h"
#include "tests/support/failure.h"

/* ---- warm-up and calibration --------------------------------------------------------------- */

Test(measure, calibrates_to_the_block_length)
{
    static const double call_ns[] = {0.9, 30, 1234, 77e3, 1.3e6, 4.9e6, 5e6, 5.1e6, 60e6};

    for (size_t k = 0; k < ARRAY_LEN(call_ns); k++) {
        struct bed b = {.fake = {{.call_ns = call_ns[k]}}};
        cr_assert_eq(measure_fakes(&b, 1, &usual_schedule), OK);
        const double calls = ceil(5e6 / call_ns[k]);
        cr_expect(fabs(b.out[0].inner_calls - calls) <= 1, "%g ns: %u calls, not %g", call_ns[k],
                  b.out[0].inner_calls, calls);
        for (int i = 0; i < b.diary.n; i++)
            cr_expect_eq(b.diary.sample[i].calls, b.out[0].inner_calls);
    }
}

Test(measure, warms_up_for_its_time)
{
    struct bed b = {.fake = {{.call_ns = 1e6}}};

    cr_assert_eq(measure_fakes(&b, 1, &usual_schedule), OK);
    const int warm = b.fake[0].blocks - b.out[0].samples;
    cr_expect(warm >= 60 && warm <= 62, "%d blocks of 5 ms in 300 ms", warm);
    cr_expect_eq(b.fake[0].primed, b.out[0].samples, "every counted block is primed, no other");
}

/* Interruptions only add time, so one slow block must not make all later blocks short. */
Test(measure, calibration_ignores_a_slow_block)
{
    struct bed b = {.fake = {{.call_ns = 1e6}}};

    cr_assert_eq(measure_fakes(&b, 1, &usual_schedule), OK);
    const int last_warm = b.fake[0].blocks - b.out[0].samples;
    b = (struct bed){.fake = {{.call_ns = 1e6, .slow_at = last_warm}}};
    cr_assert_eq(measure_fakes(&b, 1, &usual_schedule), OK);
    cr_expect_eq(b.out[0].inner_calls, 5);
}

/* One call longer than the time to warm up is enough; without such a time calls are still calibrated. */
Test(measure, least_warmup)
{
    static const struct {
        double call_ns, first_ns, warmup_ms;
        uint32_t calls;
        int blocks;
    } rule[] = {{1000, 1e6, 0, 5000, 0}, {1000, 0, 0, 5000, 0}, {400e6, 0, 300, 1, 1}};

    for (size_t k = 0; k < ARRAY_LEN(rule); k++) {
        struct schedule s = usual_schedule;
        struct bed b = {.fake = {{.call_ns = rule[k].call_ns, .first_ns = rule[k].first_ns}}};
        s.warmup_ms = rule[k].warmup_ms;
        cr_assert_eq(measure_fakes(&b, 1, &s), OK);
        cr_expect_eq(b.out[0].inner_calls, rule[k].calls, "rule %zu", k);
        if (rule[k].blocks)
            cr_expect_eq(b.fake[0].blocks - b.out[0].samples, rule[k].blocks);
    }
}

Test(measure, primes_unless_a_call_lasts_longer_than_20_blocks)
{
    struct bed b = {.fake = {{.call_ns = 100e6}, {.call_ns = 100.1e6}}};

    cr_assert_eq(measure_fakes(&b, 2, &usual_schedule), OK);
    NUMBERS({b.fake[0].primed, b.out[0].samples}, {b.fake[1].primed, 0});
}

/* ---- stopping ------------------------------------------------------------------------------ */

Test(measure, stops_by_interval_only_when_it_is_narrow)
{
    double sorted[MOST_BLOCKS];

    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct schedule s = usual_schedule;
        struct bed b = {.fake = {{.call_ns = 1e6, .noise = 0.05}}};
        s.seed = seed;
        s.max_time_s = 15;
        cr_assert_eq(measure_fakes(&b, 1, &s), OK);
        const int n = stats_usable(b.diary.sample, b.diary.n, sorted, NULL);
        sort_numbers(sorted, n);
        const struct interval ci = stats_median_interval(sorted, n);
        cr_expect_eq(b.out[0].stop, STOP_CI, "seed %d", (int)seed);
        cr_expect_leq((ci.high - ci.low) / 2, 0.01 * ci.mid, "seed %d: [%g %g]", (int)seed, ci.low,
                      ci.high);
        cr_expect_gt((ci.high - ci.low) / 2, 0.005 * ci.mid, "seed %d: far too late", (int)seed);
        cr_expect_gt(n, 15, "seed %d: noise of 5 %% must take more than the least", (int)seed);
    }
}

Test(measure, noisy_target_stops_by_time)
{
    struct schedule s = usual_schedule;
    struct bed b = {.fake = {{.call_ns = 1e6, .noise = 0.5}}};

    s.target_ci = 1e-6;
    cr_assert_eq(measure_fakes(&b, 1, &s), OK);
    cr_expect_eq(b.out[0].stop, STOP_TIME);
    double spent = 0; /* the calls of a block, and one to prime it */
    for (int i = 0; i < b.diary.n; i++) {
        cr_expect_lt(spent, 3e9, "sample %d of %d began after the time was up", i, b.diary.n);
        spent += b.diary.sample[i].wall_ns * (1 + 1.0 / b.out[0].inner_calls);
    }
    cr_expect_geq(spent, 3e9);
}

/* A quiet target stops by its interval, which six samples have. Time wins over more of them, but not over
 * six; of blocks longer than the three seconds three must do. */
Test(measure, samples_that_are_asked_for)
{
    static const struct {
        double call_ns, noise;
        int min_samples, samples;
    } rule[] = {{1e6, 1e-3, 15, 15}, {1e6, 0, 0, 6},       {10e9, 0, 1000, 3},
                {3.1e9, 0, 1000, 3}, {2.9e9, 0, 1000, 6},  {1e9, 0, 1000, 6},
                {0.6e9, 0, 1000, 6}, {0.35e9, 0, 1000, 9}, {50e6, 0, 1000, 30}};

    for (size_t k = 0; k < ARRAY_LEN(rule); k++) {
        struct schedule s = usual_schedule;
        struct bed b = {.fake = {{.call_ns = rule[k].call_ns, .noise = rule[k].noise}}};
        const enum stop_reason why = rule[k].min_samples == 1000 ? STOP_TIME : STOP_CI;
        s.min_samples = rule[k].min_samples;
        cr_assert_eq(measure_fakes(&b, 1, &s), OK);
        cr_expect_eq(b.out[0].samples, rule[k].samples, "%g ns: %d samples", rule[k].call_ns,
                     b.out[0].samples);
        NUMBERS({b.out[0].stop, why}, {b.diary.n, rule[k].samples}, {b.diary.done[0], 1},
                {b.diary.why[0], why});
    }
}

Test(measure, marks_preempted_blocks_and_numbers_rounds)
{
    struct schedule s = usual_schedule;
    struct bed b = {.fake = {{.call_ns = 1e6, .switches_every = 4}}};

    s.min_samples = 40;
    cr_assert_eq(measure_fakes(&b, 1, &s), OK);
    int disturbed = 0;
    for (int i = 0; i < b.diary.n; i++) {
        const struct sample *x = &b.diary.sample[i];
        NUMBERS({x->round, (uint32_t)i}, {x->disturbed, x->involuntary_switches > 0},
                {x->cpu_ns, x->wall_ns / 2});
        disturbed += x->disturbed;
    }
    cr_expect(b.diary.n == 40 && disturbed == 10, "%d of %d", disturbed, b.diary.n);
}

/* ---- rounds -------------------------------------------------------------------------------- */

Test(measure, rounds_hold_every_target_once_in_changing_order)
{
    enum { N = 6, ROUNDS = 60 };
    struct schedule s = usual_schedule;
    struct bed b = {0};
    int first[N] = {0}, repeats = 0;

    for (int i = 0; i < N; i++)
        b.fake[i].call_ns = 1e6 * (i + 1) / N;
    s.min_samples = ROUNDS;
    cr_assert_eq(measure_fakes(&b, N, &s), OK);
    cr_assert_eq(b.diary.n, N * ROUNDS);
    for (int r = 0; r < ROUNDS; r++) {
        const int *order = b.diary.target + r * N;
        unsigned seen = 0;
        for (int k = 0; k < N; k++) {
            seen |= 1u << order[k];
            cr_expect_eq(b.diary.sample[r * N + k].round, (uint32_t)r);
        }
        cr_expect_eq(seen, (1u << N) - 1, "round %d", r);
        first[order[0]]++;
        repeats += r > 0 && !memcmp(order, order - N, N * sizeof(*order));
    }
    cr_expect_leq(repeats, 1, "%d of 60 rounds repeat their predecessor's order", repeats);
    for (int i = 0; i < N; i++) /* ten expected; the chance of 1 or less is 2e-4 */
        cr_expect(first[i] >= 2 && first[i] <= 24, "target %d led %d rounds", i, first[i]);
}

Test(measure, order_is_a_function_of_the_seed)
{
    struct schedule s = usual_schedule;
    static struct bed a, b, c;

    for (int i = 0; i < MOST_TARGETS; i++)
        a.fake[i].call_ns = b.fake[i].call_ns = c.fake[i].call_ns = 1e6;
    cr_assert_eq(measure_fakes(&a, MOST_TARGETS, &s), OK);
    cr_assert_eq(measure_fakes(&b, MOST_TARGETS, &s), OK);
    s.seed = 2;
    cr_assert_eq(measure_fakes(&c, MOST_TARGETS, &s), OK);
    cr_assert(a.diary.n == b.diary.n && a.diary.n == c.diary.n);
    const size_t bytes = (size_t)a.diary.n * sizeof(a.diary.target[0]);
    cr_expect_eq(memcmp(a.diary.target, b.diary.target, bytes), 0);
    cr_expect_neq(memcmp(a.diary.target, c.diary.target, bytes), 0);
}

Test(measure, given_order_finishes_one_before_the_next)
{
    struct schedule s = usual_schedule;
    struct bed b = {.fake = {{.call_ns = 3e6}, {.call_ns = 1e6}, {.call_ns = 2e6}}};

    s.interleave = false;
    cr_assert_eq(measure_fakes(&b, 3, &s), OK);
    cr_assert_eq(b.diary.n, 45);
    for (int i = 0; i < 45; i++)
        cr_expect_eq(b.diary.target[i], i / 15);
}

Test(measure, finished_targets_leave_the_rounds)
{
    struct schedule s = usual_schedule;
    struct bed b = {.fake = {{.call_ns = 1e6}, {.call_ns = 2e9}, {.call_ns = 1e6}}};

    cr_assert_eq(measure_fakes(&b, 3, &s), OK);
    cr_expect(b.out[0].samples == 15 && b.out[1].samples == 6 && b.out[2].samples == 15);
    cr_expect(b.out[1].stop == STOP_TIME && b.out[0].stop == STOP_CI);
    cr_expect(b.diary.done[0] == 1 && b.diary.done[1] == 1 && b.diary.done[2] == 1);
    cr_expect_eq(measure_fakes(&b, 0, &usual_schedule), OK); /* nothing is fine */
}

/* ---- trouble ------------------------------------------------------------------------------- */

Test(measure, failing_target_leaves_and_the_others_go_on)
{
    struct bed b = {.fake = {{.call_ns = 1e6},
                             {.call_ns = 1e6, .fail_at = 1, .fails_with = E_CHILD}, /* warm-up */
                             {.call_ns = 1e6, .fail_at = 70, .fails_with = E_NOMEM}}};

    cr_assert_eq(measure_fakes(&b, 3, &usual_schedule), OK);
    NUMBERS({b.out[0].stop, STOP_CI}, {b.out[0].samples, 15}, {b.out[0].status, OK},
            {b.out[1].stop, STOP_FAILED}, {b.out[1].samples, 0}, {b.out[1].status, E_CHILD},
            {b.out[2].stop, STOP_FAILED}, {b.out[2].status, E_NOMEM}, {b.fake[1].blocks, 1},
            {b.fake[2].blocks, 70});
    cr_expect_str_eq(b.out[1].err.msg, "fake failed  -> nothing");
    cr_expect(b.out[2].samples > 0 && b.out[2].samples < 15);
    for (int i = 0; i < 3; i++)
        cr_expect(b.diary.done[i] == 1 && b.diary.why[i] == b.out[i].stop);
}

Test(measure, a_time_that_cannot_be_is_a_failure)
{
    static const double call_ns[] = {0, -1, NAN, INFINITY};

    for (size_t k = 0; k < ARRAY_LEN(call_ns); k++) {
        struct bed b = {.fake = {{.call_ns = call_ns[k]}}};
        cr_assert_eq(measure_fakes(&b, 1, &usual_schedule), OK);
        cr_expect(b.out[0].stop == STOP_FAILED && b.out[0].status == E_CHILD);
        HAS(b.out[0].err.msg, "  -> ");
    }
}

Test(measure, interruption_keeps_what_is_there)
{
    volatile int stop = 0;
    struct schedule s = usual_schedule;
    struct bed b = {.fake = {{.call_ns = 1e6}, {.call_ns = 1e6, .stop_at = 65, .stop = &stop}}};

    s.stop = &stop;
    cr_expect_eq(measure_fakes(&b, 2, &s), E_INTERRUPTED);
    cr_expect(b.out[0].stop == STOP_INTERRUPTED && b.out[1].stop == STOP_INTERRUPTED);
    cr_expect(b.diary.done[0] == 1 && b.diary.done[1] == 1);
    cr_expect_eq(b.fake[1].blocks, 65, "the running block ends, no other starts");
    cr_expect_eq(b.diary.n, b.out[0].samples + b.out[1].samples);
    cr_expect_eq(b.diary.target[b.diary.n - 1], 1, "the running block is kept");
    cr_expect_gt(b.out[1].samples, 0);
}

Test(measure, interruption_during_warm_up_or_before)
{
    volatile int stop = 0;
    struct schedule s = usual_schedule;
    struct bed b = {.fake = {{.call_ns = 1e6, .stop_at = 3, .stop = &stop}, {.call_ns = 1e6}}};

    s.stop = &stop;
    cr_expect_eq(measure_fakes(&b, 2, &s), E_INTERRUPTED);
    cr_expect(b.fake[0].blocks == 3 && b.fake[1].blocks == 0 && b.diary.n == 0);
    cr_expect(b.diary.done[0] == 1 && b.diary.done[1] == 1);

    s.interleave = false;
    b = (struct bed){.fake = {{.call_ns = 1e6}, {.call_ns = 1e6}}};
    cr_expect_eq(measure_fakes(&b, 2, &s), E_INTERRUPTED);
    NUMBERS({b.fake[0].blocks, 0}, {b.diary.done[0], 1}, {b.diary.done[1], 1});
}

/* A child that dies of the same Ctrl-C has not failed. */
Test(measure, failure_after_interruption_is_an_interruption)
{
    volatile int stop = 0;
    struct schedule s = usual_schedule;
    struct bed b = {
        .fake = {
            {.call_ns = 1e6, .stop_at = 64, .stop = &stop, .fail_at = 64, .fails_with = E_CHILD}}};

    s.stop = &stop;
    cr_expect_eq(measure_fakes(&b, 1, &s), E_INTERRUPTED);
    cr_expect(b.out[0].stop == STOP_INTERRUPTED && b.out[0].status == E_CHILD);
}

Test(measure, error_of_emit_aborts)
{
    struct bed b = {.fake = {{.call_ns = 1e6}, {.call_ns = 1e6}}, .diary.fail_at = 5};

    cr_expect_eq(measure_fakes(&b, 2, &usual_schedule), E_IO);
    cr_expect(b.diary.n == 5 && b.diary.done[0] == 0 && b.diary.done[1] == 0);
    cr_expect_str_eq(b.err.msg, "disk full  -> free some");
    cr_expect(b.out[0].stop == STOP_INTERRUPTED && b.out[1].stop == STOP_INTERRUPTED);

    struct bed c = {.fake = {{.call_ns = 1e6}, {.call_ns = 1e6}}, .diary.fail_done = true};
    cr_expect_eq(measure_fakes(&c, 2, &usual_schedule), E_IO);
    cr_expect_eq(c.diary.done[0] + c.diary.done[1], 1);
}

Test(measure, stop_names)
{
    TEXTS({stop_name[STOP_CI], "ci"}, {stop_name[STOP_TIME], "time"},
          {stop_name[STOP_INTERRUPTED], "interrupted"}, {stop_name[STOP_FAILED], "failed"});
}

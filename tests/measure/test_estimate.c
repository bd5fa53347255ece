/* SPDX-License-Identifier: MIT
 *
 * Estimates of a plan: what each case is charged for. */
#include "harness/measure/estimate.h"
#include "tests/support/command_line.h"
#include "tests/support/failure.h"

TestSuite(estimate, .timeout = 240);

static const struct speeds speeds = {
    .reference = {.products = 4e9, .attention = 2e9, .backward = 1e9}, .threads = 1};

static bool never(void *arg, const struct bench_case *c) { return false; }

static bool is_of(void *arg, const struct bench_case *c)
{
    return strcmp(c->backend->name, arg) == 0;
}

static struct plan estimate_line(struct estimate *t, const char *line,
                                 bool (*done)(void *arg, const struct bench_case *c),
                                 const char *arg)
{
    const struct plan p = planned("%s", line);

    estimate_plan(t, &p, &speeds, done, (void *)arg);
    kept(t->cases);
    return p;
}

#define LINE "--variant alibi,rope --workload attn --seq 256 --mem 0 --threads 1 --max-time 1 "

/* Two backends beside the reference that run on every CPU. */
static void need_libraries(void)
{
    if (!backend_find("openblas") || !backend_find("onednn"))
        cr_skip_test("openblas or onednn is not built in");
}

/* A ref case makes its own reference; otherwise the first case of each problem has it made. */
Test(estimate, a_reference_is_paid_once)
{
    struct estimate t;
    int paid = 0;

    need_libraries();
    struct plan p = estimate_line(&t, LINE "--backend ref,openblas", never, NULL);
    cr_assert_eq(p.n, 4);
    cr_expect_eq(t.checks, 0);

    p = estimate_line(&t, LINE "--backend openblas,onednn", never, NULL);
    double total = 0, checks = 0;
    for (int i = 0; i < p.n; i++) {
        const struct case_estimate *one = estimate_of(&t, &p.cases[i]);
        paid += one->reference > 0;
        total += case_estimate_s(one);
        checks += one->reference;
        cr_expect_geq(one->run, 1, "the time to measure");
    }
    NUMBERS({paid, 2}, {t.total, total, 1e-9}, {t.checks, checks, 1e-9});

    estimate_line(&t, LINE "--backend openblas,onednn --no-check", never, NULL);
    cr_expect_eq(t.checks, 0);
}

/* A plan names what it refuses; only a plan keeps such a model from attending to another text. */
Test(estimate, what_is_refused_is_not_opened)
{
    struct estimate t;
    const struct plan p =
        estimate_line(&t, "-V vanilla,xl -w cross -b ref --seq 8 --mem 4 --threads 1", never, NULL);

    cr_assert_eq(p.n, 2);
    cr_expect(!p.cases[0].unsupported && p.cases[1].unsupported);
    cr_expect_lt(case_estimate_s(estimate_of(&t, &p.cases[1])),
                 case_estimate_s(estimate_of(&t, &p.cases[0])));
}

/* Cases that a resumed run has already take no time, and the limit of a check holds. */
Test(estimate, what_is_left)
{
    struct estimate all, left;

    need_libraries();
    estimate_line(&all, LINE "--backend ref,openblas", never, NULL);
    estimate_line(&left, LINE "--backend ref,openblas", is_of, "ref");
    cr_expect_lt(left.total, all.total);
    cr_expect_eq(case_estimate_s(&left.cases[0]), 0);

    struct plan p =
        estimate_line(&all, LINE "--backend openblas --seq 8192 --check-time 1", never, NULL);
    for (int i = 0; i < p.n; i++)
        if (p.cases[i].seq == 8192)
            cr_expect_float_eq(all.cases[i].reference, 1, 0.02);
}

/* ---- calls longer than the time to measure ------------------------------------------------- */

/* The reference at 256, 1024 and 4096 keys: 0.1 s, 1.6 s and 26 s of products, so that --max-time 1
 * is longer, about as long, and much shorter than a call. */
Test(estimate, long_calls_take_their_time)
{
    static const char *const lengths[] = {"256", "1024", "4096"};
    double run[3], call[3];
    int longer = 0;

    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        struct estimate t;
        const char *const line =
            kept_text("--variant xl --workload attn --backend ref --mem 0 --threads 1 --max-time 1 "
                      "--warmup-ms 0 --batch 16 --seq %s",
                      lengths[i]);
        struct plan p = estimate_line(&t, line, never, NULL);
        cr_assert_eq(p.n, 1);
        run[i] = t.cases[0].run;
        call[i] = t.cases[0].call;
        /* checked, warmed up, and at least three blocks of a call, or the time that was given */
        cr_expect_geq(run[i], 2 * call[i] + fmax(1, 3 * call[i]), "%s keys", lengths[i]);
        longer += call[i] > 1;
    }
    cr_assert(longer >= 1 && longer <= 2, "%g %g %g s", call[0], call[1], call[2]);
    cr_expect_geq(run[2], 5 * call[2]);
    cr_expect_lt(run[2], 5.5 * call[2]);
}

/* Threads, memories and repeated time: what is charged follows the case, not the first of them. */
Test(estimate, every_case_by_its_own_shape)
{
    struct estimate t;

    struct plan p = estimate_line(
        &t,
        "--variant xl --workload attn --backend ref --seq 64,512 --mem 0,512 --threads "
        "1 --batch 1,4 --max-time 0.01",
        never, NULL);
    cr_assert_eq(p.n, 8);
    for (int i = 0; i < p.n; i++)
        for (int k = 0; k < p.n; k++) {
            const struct bench_case *const a = &p.cases[i], *const b = &p.cases[k];
            const bool more = a->seq >= b->seq && a->mem >= b->mem && a->batch >= b->batch;
            if (i != k && more)
                cr_expect_gt(t.cases[i].call, t.cases[k].call, "%s, %s", a->repro, b->repro);
            if (i != k && more)
                cr_expect_gt(t.cases[i].run, t.cases[k].run, "%s, %s", a->repro, b->repro);
        }
}

/* Two programs of two processes each, twice: eight starts, and 60 blocks of 5 ms with a pause of 2
 * before each. */
Test(estimate, pairs_of_two_programs)
{
    struct speeds slow = speeds;

    struct plan p = planned(LINE "--backend ref --block-ms 5");
    const double of_15 = estimate_pairs_s(&p.cases[0], &speeds, 2, 2, 15);
    const double of_30 = estimate_pairs_s(&p.cases[0], &speeds, 2, 2, 30);
    slow.start_s = 3;
    cr_expect_float_eq(estimate_pairs_s(&p.cases[0], &slow, 2, 2, 15) - of_15, 24, 1e-9);
    const double block = fmax(0.005, estimate_call_s(&p.cases[0], &speeds));
    cr_expect_float_eq(of_30 - of_15, 60 * (block + 0.002), 1e-9);
}

/* Half of the CPU: computing takes twice as long, timed blocks end at --max-time all the same. */
Test(estimate, other_programs_slow_what_is_computed)
{
    struct speeds busy = speeds;
    struct estimate quiet, slow;

    NUMBERS({load_slows(0, 2, 2), 1}, {load_slows(1, 2, 8), 1}, {load_slows(2, 2, 2), 2},
            {load_slows(10, 2, 2), 6}, {load_slows(10, 2, 0), 1});
    struct plan p = estimate_line(&quiet, LINE "--backend ref", never, NULL);
    busy.slow = 2;
    estimate_plan(&slow, &p, &busy, never, NULL);
    for (int i = 0; i < p.n; i++) {
        const struct case_estimate *const a = &quiet.cases[i], *const b = &slow.cases[i];
        NUMBERS({b->call, 2 * a->call, 1e-12}, {b->reference, 2 * a->reference, 1e-12});
        cr_expect_lt(b->run - a->run, a->run - 1, "a second is timed in any case");
        cr_expect_geq(b->run, a->run);
    }
    free(slow.cases);
}

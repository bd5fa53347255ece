/* SPDX-License-Identifier: MIT
 *
 * Estimates of a plan: what each case is charged for. */
#include "harness/measure/estimate.h"
#include "tests/support/command_line.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(estimate, .timeout = 60);

static const struct speeds speeds = {
    .reference = {.products = 4e9, .attention = 2e9, .backward = 1e9}, .threads = 1};

static bool never(void *arg, const struct bench_case *c)
{
    (void)arg, (void)c;
    return false;
}

static bool is_of(void *arg, const struct bench_case *c)
{
    return strcmp(c->backend->name, arg) == 0;
}

static void estimate_line(struct estimate *t, struct plan *p, struct options *o, const char *line,
                          bool (*done)(void *arg, const struct bench_case *c), const char *arg)
{
    struct err e;

    must_plan(p, o, line);
    cr_assert_eq(estimate_plan(t, p, &speeds, done, (void *)arg, &e), OK, "%s", e.msg);
}

static void drop(struct estimate *t, struct plan *p, struct options *o)
{
    free(t->of);
    drop_plan(p, o);
}

#define LINE "--variant alibi,rope --workload attn --seq 256 --mem 0 --threads 1 --max-time 1 "

/* A ref case makes its own reference; otherwise the first case of each problem has it made. */
/* Two backends beside the reference that run on every CPU. */
static void need_libraries(void)
{
    if (!backend_find("openblas") || !backend_find("onednn"))
        cr_skip_test("openblas or onednn is not built in");
}

Test(estimate, a_reference_is_paid_once)
{
    struct estimate t;
    struct options o;
    struct plan p;
    int paid = 0;

    need_libraries();
    estimate_line(&t, &p, &o, LINE "--backend ref,openblas", never, NULL);
    cr_assert_eq(p.n, 4);
    cr_expect_eq(t.checks, 0);
    drop(&t, &p, &o);

    estimate_line(&t, &p, &o, LINE "--backend openblas,onednn", never, NULL);
    double total = 0, checks = 0;
    for (int i = 0; i < p.n; i++) {
        const struct case_estimate *one = estimate_of(&t, &p.cases[i]);
        paid += one->reference > 0;
        total += case_estimate_s(one);
        checks += one->reference;
        cr_expect_geq(one->run, 1, "the time to measure");
    }
    cr_expect_eq(paid, 2);
    cr_expect_float_eq(t.total, total, 1e-9);
    cr_expect_float_eq(t.checks, checks, 1e-9);
    drop(&t, &p, &o);

    estimate_line(&t, &p, &o, LINE "--backend openblas,onednn --no-check", never, NULL);
    cr_expect_eq(t.checks, 0);
    drop(&t, &p, &o);
}

/* Cases that a resumed run has already take no time, and the limit of a check holds. */
Test(estimate, what_is_left)
{
    struct estimate all, left;
    struct options o, o2;
    struct plan p, p2;

    need_libraries();
    estimate_line(&all, &p, &o, LINE "--backend ref,openblas", never, NULL);
    estimate_line(&left, &p2, &o2, LINE "--backend ref,openblas", is_of, "ref");
    cr_expect_lt(left.total, all.total);
    cr_expect_eq(case_estimate_s(&left.of[0]), 0);
    drop(&all, &p, &o);
    drop(&left, &p2, &o2);

    estimate_line(&all, &p, &o, LINE "--backend openblas --seq 8192 --check-time 1", never, NULL);
    for (int i = 0; i < p.n; i++)
        if (p.cases[i].seq == 8192)
            cr_expect_float_eq(all.of[i].reference, 1, 0.02);
    drop(&all, &p, &o);
}

/* SPDX-License-Identifier: MIT
 *
 * How many rows a time allows, and what a reference costs. */
#include "harness/worker/reference_cost.h"
#include "tests/support/command_line.h"
#include "tests/support/failure.h"

TestSuite(reference_cost, .timeout = 240);

static const struct reference_rates rates = {.products = 4e9, .attention = 2e9, .backward = 1e9};

static int rows_of(const char *line, double limit_s, double *cost_s)
{
    struct job j;

    struct plan p = planned("%s", line);
    cr_assert_eq(p.n, 1);
    MUST(job_open(&j, &p.cases[0], &failure));
    MUST(job_map(&j, &failure));
    const int rows = reference_rows(&j, &rates, limit_s, cost_s);
    job_close(&j);
    return rows;
}

#define ATTN "-b ref -w attn -V alibi --seq 2048 --mem 2048 --threads 1"

/* Attention alone: 512 wide, half of the last 2048 keys hidden, two products: 2 * 2 * 512 * 2048 *
 * (2048 + 2049 / 2) FLOP, 6.44 s at 2e9. */
Test(reference_cost, rows_by_time)
{
    double whole, some;

    cr_expect_eq(rows_of(ATTN, 0, &whole), 2048, "no limit");
    cr_expect_float_eq(whole, 2 * 2 * 512 * 2048.0 * (2048 + 1024.5) / 2e9, 1e-9 * whole);
    cr_expect_eq(rows_of(ATTN, 1.01 * whole, &some), 2048);
    cr_expect_eq(some, whole);
    cr_expect_eq(rows_of(ATTN, whole / 4, &some), 512);
    cr_expect_float_eq(some, whole / 4, 1e-9 * whole);
    cr_expect_eq(rows_of(ATTN, 1e-6, &some), 64, "the least");
    cr_expect_float_eq(some, whole / 32, 1e-9 * whole);
}

/* A layer's products are needed for all rows; what is left of the time goes to attention. */
Test(reference_cost, products_come_first)
{
    static const char line[] = "-b ref -w layer -V xl --seq 1024 --mem 1024 --threads 1";
    double whole, some;

    cr_expect_eq(rows_of(line, 0, &whole), 1024);
    const int rows = rows_of(line, 0.9 * whole, &some);
    cr_expect(rows > 64 && rows < 0.9 * 1024, "%d rows", rows);
    cr_expect_float_eq(some, 0.9 * whole, 0.001 * whole);
    cr_expect_eq(rows_of(line, whole / 1000, &some), 64);
    cr_expect_gt(some, whole / 1000);
}

/* Never a part of what cannot be had in parts. */
Test(reference_cost, all_rows_of_the_others)
{
    double cost;

    EACH_TEXT (line, "-b ref -w attn -V xl --phase fwd_bwd --seq 512 --mem 0 --threads 1",
               "-b ref -w segment -V xl --seq 512 --mem 0 --threads 1",
               "-b ref -w layer -V switch --seq 512 --mem 0 --threads 1") {
        cr_expect_eq(rows_of(line, 1e-6, &cost), 512, "%s", line);
        cr_expect_gt(cost, 1e-6);
    }
    cr_expect_eq(rows_of("-b ref -w attn -V xl --seq 64 --mem 512 --threads 1", 1e-6, &cost), 64);
}

/* Plausible numbers of a machine of this decade, busy or not. */
Test(reference_cost, rates_are_those_of_this_machine)
{
    struct reference_rates r;

    MUST(reference_rates_measure(&r, 1, &failure));
    cr_expect(r.products > 1e7 && r.products < 1e12, "%g", r.products);
    cr_expect(r.attention > 1e7 && r.attention < 1e12, "%g", r.attention);
    cr_expect(r.backward > 1e7 && r.backward < 1e12, "%g", r.backward);
}

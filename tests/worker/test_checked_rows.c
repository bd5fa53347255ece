/* SPDX-License-Identifier: MIT
 *
 * The rows that are compared with a reference: which they are, that a reference of them alone has
 * the numbers of the whole one, and that a wrong number in one of them is found. */
#include "harness/worker/workload.h"
#include "tests/support/command_line.h"
#include "tests/support/started_job.h"

TestSuite(checked_rows, .timeout = 120);

/* ---- which they are ----------------------------------------------------------------------- */

/* In order, one in each part of the sequence, the ends among them; 16 of 1000 random rows are not
 * the same for two sequences or seeds (the chance of 14 equal draws of 62 each is 62^-14). */
Test(checked_rows, cover_the_sequence)
{
    const struct checked_rows r = {.B = 3, .L = 1000, .each = 16, .seed = 7};
    struct checked_rows other = r;
    int as_next = 0, as_other = 0;

    other.seed = 8;
    for (int b = 0; b < r.B; b++) {
        NUMBERS({checked_row(&r, b, 0), 0}, {checked_row(&r, b, r.each - 1), r.L - 1});
        for (int k = 0; k < r.each; k++) {
            const int row = checked_row(&r, b, k);
            cr_expect(row >= k * r.L / r.each && row < (k + 1) * r.L / r.each, "[%d,%d] %d", b, k,
                      row);
            as_next += b > 0 && row == checked_row(&r, b - 1, k);
            as_other += row == checked_row(&other, b, k);
        }
    }
    cr_expect_lt(as_next, 2 * r.each);
    cr_expect_lt(as_other, 3 * r.each);
}

Test(checked_rows, all_are_all)
{
    const struct checked_rows r = {.B = 2, .L = 37, .each = 37, .seed = 1};

    cr_expect(checked_rows_are_all(&r));
    for (int b = 0; b < r.B; b++)
        for (int k = 0; k < r.L; k++)
            cr_expect_eq(checked_row(&r, b, k), k);
}

/* ---- what they are worth ------------------------------------------------------------------ */

static bool can_choose_rows(const struct job *j)
{
    return j->ops->flop_of_rows && j->ops->flop_of_rows(j) > 0;
}

/* The reference of `each` rows has the bits of the whole one. */
static void compare_references(const struct bench_case *c, int each, const char *where)
{
    struct job whole, some;

    must_start(&whole, c);
    must_start(&some, c);
    const struct checked_rows rows = job_rows(&some, each);
    const size_t width = (size_t)some.out_shape[2];
    float *const got = room(job_elements(rows.B, rows.each, some.out_shape[2]), sizeof(*got));
    cr_assert_eq(job_want_rows(&some, &rows, &failure), OK);
    job_run(&whole);
    job_run(&some);
    job_copy_rows(&some, &rows, got);
    for (int i = 0; i < rows.B * each; i++)
        cr_expect_arr_eq(got + (size_t)i * width,
                         whole.out +
                             (size_t)(i / each * rows.L + checked_row(&rows, i / each, i % each)) *
                                 width,
                         width * sizeof(*got), "%s, row %d: %s", where, i, c->repro);
    cr_expect(memcmp(some.out, whole.out, some.n_out * sizeof(*got)) != 0,
              "%s: all rows were computed", c->repro);
    job_close(&some); /* its chosen rows are not among what is kept */
}

/* All variants, with memory, several sequences, masks, gates: wherever rows may be left out. */
Test(checked_rows, are_those_of_the_whole_reference)
{
    int attn = 0, layers = 0;

    EACH_TEXT (
        line,
        "-b ref -w attn -V all --seq 70 --mem 30 --batch 2 --d-model 24 --heads 3 --threads 2",
        "-b ref -w layer -V all --seq 70 --mem 30 --batch 2 --d-model 24 --heads 3 --d-inner 40 "
        "--threads 2",
        "-b ref -w layer -V xl,shaw --seq 70 --mem 30 --batch 2 --d-model 24 --heads 3 --d-inner "
        "40 "
        "--mem-kind kv --threads 1",
        "-b ref -w layer -V gtrxl --gate gru,input,output,highway,sigtanh,residual --seq 64 --mem "
        "6 "
        "--d-model 16 --heads 2 --d-head 7 --threads 1",
        "-b ref -w attn,layer -V window,bigbird --seq 64 --mem 64 --d-model 16 --heads 2 --threads "
        "1 "
        "--mask "
        "window=5,dilation=3;block=7,back=1,global=3,random=2;stride=6,fixed=5,summary=2") {
        struct plan p = planned("%s", line);
        for (int c = 0; c < p.n; c++) {
            struct job j;
            if (p.cases[c].unsupported)
                continue;
            cr_assert_eq(job_open(&j, &p.cases[c], &failure), OK);
            cr_assert_eq(job_map(&j, &failure), OK);
            const bool can = can_choose_rows(&j);
            job_close(&j);
            attn += can && p.cases[c].workload == WORK_ATTN;
            layers += can && p.cases[c].workload == WORK_LAYER;
            if (can)
                compare_references(&p.cases[c], 16, "16 rows");
        }
    }
    cr_expect_gt(attn, 20);
    cr_expect_gt(layers, 20);
}

/* Where a row depends on the attention of others there is no choice: pooled queries, routed
 * feed-forward networks, replaced attention, whole models. */
Test(checked_rows, no_choice_where_rows_meet_again)
{
    EACH_TEXT (
        line, "-b ref -w layer -V switch,linear,aan,synthesizer --seq 32 --mem 0 --threads 1",
        "-b ref -w segment,decode,train -V xl,funnel --seq 32 --mem 8 --d-model 32 --heads 2 "
        "--threads 1") {
        struct plan p = planned("%s", line);
        for (int c = 0; c < p.n; c++) {
            struct job j;
            cr_assert_eq(job_open(&j, &p.cases[c], &failure), OK);
            cr_assert_eq(job_map(&j, &failure), OK);
            cr_expect_not(can_choose_rows(&j), "%s", p.cases[c].repro);
            job_close(&j);
        }
    }
}

/* One wrong number in every row, as a wrong kernel has, is wrong in the sample, and is named by its
 * place in the output; right numbers are right. */
Test(checked_rows, a_wrong_number_in_every_row_is_found)
{
    struct job j;
    struct agreement a;
    int b, row, at;

    struct plan p =
        planned("-b ref -w attn -V xl --seq 200 --mem 20 --batch 2 --d-model 24 --heads 3 "
                "--threads 1");
    must_start(&j, &p.cases[0]);
    const struct checked_rows rows = job_rows(&j, 16);
    const size_t n = job_elements(rows.B, rows.each, j.out_shape[2]);
    float *const want = room(n, sizeof(*want));
    job_run(&j);
    job_copy_rows(&j, &rows, want);
    cr_assert_eq(job_check_output(&j, &rows, want, &a, &failure), OK);
    cr_expect(a.within);
    cr_expect_eq(a.max_abs, 0);
    for (size_t i = 5; i < j.n_out; i += (size_t)j.out_shape[2])
        ((float *)j.out)[i] += 1;
    cr_assert_eq(job_check_output(&j, &rows, want, &a, &failure), OK);
    cr_expect_not(a.within);
    cr_assert_eq(sscanf(a.where, "[%d,%d,%d]", &b, &row, &at), 3, "%s", a.where);
    cr_expect_eq(at, 5);
    bool sampled = false;
    for (int k = 0; k < rows.each; k++)
        sampled = sampled || checked_row(&rows, b, k) == row;
    cr_expect(sampled, "%s", a.where);
}

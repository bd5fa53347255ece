/* SPDX-License-Identifier: MIT
 *
 * Comparisons of a run that has two values of every axis: each row meets the one that differs in the
 * axis alone, and rows of two runs meet by what they are, not by where they stand. */
#include "harness/compare/compare.h"
#include "tests/support/many_rows.h"

TestSuite(compare_axes, .init = folder_make, .fini = folder_remove, .timeout = 240);

static struct run written(int stride, double (*factor)(int i))
{
    struct rundir d = made_open("aaaa");
    many_write(&d, stride, factor);
    const struct run r = made_read(&d);
    folder_remove();
    folder_make();
    return r;
}

static void expect_ratio(const struct comparison *c, double ratio)
{
    cr_expect_float_eq(c->change.log.mid, log(ratio), 1e-9, "%s: %g, not %g", c->label,
                       exp(c->change.log.mid), ratio);
}

/* The label says what the row is, but for the axis. */
static void expect_label(const struct comparison *c, int i, int bit)
{
    const struct many_row r = many_row(i);
    char seq[32], mem[32];

    snprintf(seq, sizeof(seq), " seq=%d", r.is.seq);
    snprintf(mem, sizeof(mem), " mem=%d", r.mem);
    if (bit != 4)
        cr_expect(strstr(c->label, seq), "%s: not%s", c->label, seq);
    if (bit != 8)
        cr_expect(strstr(c->label, mem), "%s: not%s", c->label, mem);
    if (bit != 1)
        cr_expect(strstr(c->label, r.is.variant), "%s: not %s", c->label, r.is.variant);
    if (bit != 2)
        cr_expect(strstr(c->label, r.is.backend), "%s: not %s", c->label, r.is.backend);
}

Test(compare_axes, each_row_meets_its_base)
{
    static const struct {
        const char *axis, *base;
        int bit;
    } axes[] = {{"variant", "xl", 1}, {"backend", "avx2", 2}, {"seq", "64", 4},
                {"mem", "0", 8},      {"batch", "1", 16},     {"threads", "1", 32}};
    struct run run = written(13, NULL);

    for (size_t k = 0; k < ARRAY_LEN(axes); k++) {
        struct comparisons c = {0};
        bool met[MANY] = {false};
        cr_assert_eq(compare_axis(&c, &run, axes[k].axis, axes[k].base, 0.02, 1, &failure), OK,
                     "%s: %s", axes[k].axis, failure.msg);
        cr_assert_eq(c.n, MANY / 2, "%s: %d", axes[k].axis, c.n);
        for (int n = 0; n < c.n; n++) {
            const struct comparison *const one = &c.v[n];
            const int before = many_of_ns(comparison_ns(one, BEFORE)),
                      after = many_of_ns(comparison_ns(one, AFTER));
            cr_assert(before >= 0 && after >= 0, "%s", one->label);
            cr_expect_eq(after - before, axes[k].bit, "%s: %d meets %d", axes[k].axis, after,
                         before);
            cr_expect(!met[after], "%d twice", after);
            met[after] = true;
            cr_expect_str_eq(one->case_id[BEFORE], many_row(before).id);
            cr_expect_str_eq(one->case_id[AFTER], many_row(after).id);
            cr_expect_eq(one->arena_bytes[BEFORE], 10000 + before);
            cr_expect_eq(one->arena_bytes[AFTER], 10000 + after);
            expect_ratio(one, (1000.0 + 37 * after) / (1000.0 + 37 * before));
            expect_label(one, after, axes[k].bit);
        }
        comparisons_free(&c);
    }
}

static double grows(int i) { return 1 + 0.01 * i; }

/* Two runs in different orders; every row has a change of its own. */
Test(compare_axes, rows_of_two_runs_meet)
{
    struct run before = written(13, NULL), after = written(29, grows);
    struct comparisons c = {0};
    bool met[MANY] = {false};
    int times = 0, scores = 0;

    compare_runs(&c, &before, &after, 0.005, 1);
    NUMBERS({c.n, 2 * MANY}, {c.unmatched[BEFORE], 0}, {c.unmatched[AFTER], 0});
    for (int n = 0; n < c.n; n++) {
        const struct comparison *const one = &c.v[n];
        if (one->exact) {
            cr_expect_eq(one->nll[BEFORE], one->nll[AFTER], "%s", one->label);
            scores++;
            continue;
        }
        const int i = many_of_ns(comparison_ns(one, BEFORE));
        cr_assert(i >= 0 && !met[i], "%s", one->label);
        met[i] = true;
        cr_expect_str_eq(one->case_id[AFTER], many_row(i).id);
        expect_ratio(one, grows(i));
        cr_expect_eq(one->change.verdict, i == 0 ? VERDICT_SAME : VERDICT_SLOWER, "row %d", i);
        times++;
    }
    cr_expect(times == MANY && scores == MANY);
    comparisons_free(&c);
}

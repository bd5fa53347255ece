/* SPDX-License-Identifier: MIT
 *
 * Relative effective context length on losses that are followed by hand. */
#include "harness/learn/score/recl.h"
#include "tests/support/failure.h"

/* Two models, contexts of 0, 10 and 20 tokens, four tokens.
 *
 *   c = 0:   A 4 3 2 1   B 5 2 2 2   b = 4 2 2 1, mean 2.25
 *   c = 10:  A 3 3 2 1   B 4 1 2 2   b = 3 1 2 1, mean 1.75
 *   c = 20:  A 3 3 2 1   B 4 1 1 2
 *
 * All tokens, from 0 to 10: A min(b, l) = 3 2 2 1, mean 2: g = 1 - e^-0.25 = 0.221; B 4 1 2 1, mean
 * 2: the same. From 10 to 20: A 3 1 2 1, mean 1.75: g = 0, so RECL 10; B 3 1 1 1, mean 1.5: it goes
 * on to the end. The hardest quarter is the first token: A gains (4 to 3, g = 1 - e^-1), then
 * nothing: 10; B has 4 at b = 4: no gain, 0. */
static const float a0[] = {4, 3, 2, 1}, a10[] = {3, 3, 2, 1}, a20[] = {3, 3, 2, 1};
static const float b0[] = {5, 2, 2, 2}, b10[] = {4, 1, 2, 2}, b20[] = {4, 1, 1, 2};
static const float *const a[] = {a0, a10, a20}, *const b[] = {b0, b10, b20};
static const int contexts[] = {0, 10, 20};

Test(recl, followed_by_hand)
{
    const struct recl_model model[] = {{a}, {b}};
    struct recl r[2];

    cr_assert_eq(recl_of_group(r, model, 2, contexts, 3, 4, 1, &failure), OK);
    cr_expect(r[0].length == 10 && !r[0].at_end, "%d", r[0].length);
    cr_expect(r[1].length == 20 && r[1].at_end, "%d", r[1].length);
    NUMBERS({r[0].gain, 1 - exp(-0.25), 1e-12}, {r[1].gain, 1 - exp(-0.25), 1e-12});
    cr_assert_eq(recl_of_group(r, model, 2, contexts, 3, 4, 0.25, &failure), OK);
    cr_expect(r[0].length == 10 && !r[0].at_end, "%d", r[0].length);
    cr_expect(r[1].length == 0 && !r[1].at_end, "%d", r[1].length);
    NUMBERS({r[0].gain, 1 - exp(-1), 1e-12}, {r[1].gain, 0, 1e-12});
}

/* Alone, B is its own baseline: 5 2 2 2 (2.75) to 4 1 2 2 (2.25), to 4 1 1 2 (2): it gains twice.
 */
Test(recl, the_group_sets_the_baseline)
{
    const struct recl_model model[] = {{b}};
    struct recl r;

    cr_assert_eq(recl_of_group(&r, model, 1, contexts, 3, 4, 0.25, &failure), OK);
    cr_expect(r.length == 10 && !r.at_end, "the first token: 5, 4, 4: %d", r.length);
    cr_expect_float_eq(r.gain, 1 - exp(-1), 1e-12);
    cr_assert_eq(recl_of_group(&r, model, 1, contexts, 3, 4, 1, &failure), OK);
    cr_expect(r.length == 20 && r.at_end);
    cr_expect_float_eq(r.gain, 1 - exp(-0.5), 1e-12);
}

/* A gain counts from 1 % on. */
Test(recl, the_threshold)
{
    const struct recl_model model[] = {{(const float *const[]){(float[]){1}, (float[]){0.9895f}}}};
    const struct recl_model less[] = {{(const float *const[]){(float[]){1}, (float[]){0.9905f}}}};
    struct recl r;

    cr_assert_eq(recl_of_group(&r, model, 1, contexts, 2, 1, 1, &failure), OK); /* 1 - e^-0.0105 */
    cr_expect_eq(r.length, 10);
    cr_assert_eq(recl_of_group(&r, less, 1, contexts, 2, 1, 1, &failure), OK); /* 1 - e^-0.0095 */
    cr_expect_eq(r.length, 0);
}

/* A model at chance: its losses differ from context to context as those of a draw, half of them below the
 * baseline, but their mean stays. The other one learns. */
Test(recl, a_model_at_chance_has_none)
{
    static const float c0[] = {3, 1, 3, 1}, c10[] = {1, 3, 1, 3};
    static const float d0[] = {3, 3, 3, 3}, d10[] = {2, 2, 2, 2};
    const struct recl_model model[] = {{(const float *const[]){c0, c10}},
                                       {(const float *const[]){d0, d10}}};
    struct recl r[2];

    cr_assert_eq(recl_of_group(r, model, 2, contexts, 2, 4, 1, &failure), OK);
    cr_expect(r[0].none && r[0].gain > 0.01, "%g", r[0].gain);
    cr_expect(!r[1].none && r[1].length == 10);
}

/* SPDX-License-Identifier: MIT
 *
 * The next token: probabilities followed by hand. */
#include "harness/learn/score/sampler.h"
#include "tests/support/failure.h"

/* Probabilities 0.2, 0.5, 0.3 at temperature 1. */
static const double p[] = {0.2, 0.5, 0.3};

static int32_t next(double temperature, int top_k, double top_p, double u)
{
    struct sampler s = {.temperature = temperature, .top_k = top_k, .top_p = top_p};
    float logits[3];

    for (int i = 0; i < 3; i++)
        logits[i] = (float)(log(p[i]) + 7);
    cr_assert_eq(sampler_open(&s, 3, &failure), OK);
    const int32_t id = sampler_next(&s, logits, u);
    sampler_close(&s);
    return id;
}

/* The likeliest stands first: the token is where the sum of p passes u. */
static void expect_draws(double temperature, int top_k, double top_p, double first, double second)
{
    const double off = 1e-5; /* logits are floats of 7: their rounding moves p by 4e-7 */

    cr_expect_eq(next(temperature, top_k, top_p, off), 1);
    cr_expect_eq(next(temperature, top_k, top_p, first - off), 1);
    if (second > first)
        cr_expect_eq(next(temperature, top_k, top_p, first + off), 2);
    if (second > first)
        cr_expect_eq(next(temperature, top_k, top_p, second - off), 2);
    if (second < 1)
        cr_expect_eq(next(temperature, top_k, top_p, second + off), 0);
    cr_expect_eq(next(temperature, top_k, top_p, 1 - off), second < 1 ? 0 : second > first ? 2 : 1);
}

Test(sampler, draws)
{
    expect_draws(1, 0, 1, 0.5, 0.8);
    expect_draws(1, 3, 1, 0.5, 0.8);
    expect_draws(1, 2, 1, 0.625, 1);
    expect_draws(1, 1, 1, 1, 1);
    expect_draws(1, 0, 0.49, 1, 1);
    expect_draws(1, 0, 0.51, 0.625, 1);
    expect_draws(1, 0, 0.81, 0.5, 0.8);
    expect_draws(1, 2, 0.6, 1, 1); /* of the two that are left the first has 0.625 */
    /* Temperature 1/2 squares probabilities: 0.04, 0.25, 0.09 of 0.38. */
    expect_draws(0.5, 0, 1, 0.25 / 0.38, 0.34 / 0.38);
    cr_expect_eq(next(0, 0, 1, 0.999), 1);
}

Test(sampler, equal_and_odd_logits)
{
    struct sampler s = {.temperature = 0, .top_p = 1};

    cr_assert_eq(sampler_open(&s, 3, &failure), OK);
    cr_expect_eq(sampler_next(&s, (float[]){1, 2, 2}, 0.5), 1);
    cr_expect_eq(sampler_next(&s, (float[]){-INFINITY, -3, -INFINITY}, 0.5), 1);
    cr_expect_eq(sampler_next(&s, (float[]){1, NAN, 2}, 0.5), -1);
    cr_expect_eq(sampler_next(&s, (float[]){1, INFINITY, 2}, 0.5), -1);
    s.temperature = 1;
    s.top_k = 1;
    cr_expect_eq(sampler_next(&s, (float[]){1, 2, 2}, 0.999), 1);
    sampler_close(&s);
}

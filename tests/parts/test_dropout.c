/* SPDX-License-Identifier: MIT
 *
 * Dropout: its rate, what its masks depend on, and that a gradient is dropped like its value.
 * (Derivatives of whole models under a fixed mask: test_grad_lm.c; runs that continue to the same
 * bits: test_train.c.) */
#include "variants/parts/dropout.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 50001 }; /* no multiple of four, and large enough for several threads */

static const struct dropout quarter = {.p = 0.25f, .seed = 5, .step = 17, .layer = 3};

static float *dropped(const struct dropout *d, enum drop_place place, int threads)
{
    float *x = malloc(N * sizeof(*x));

    cr_assert_not_null(x);
    for (int i = 0; i < N; i++)
        x[i] = 3;
    dropout(d, place, x, N, threads);
    return x;
}

/* A binomial count: 5 standard deviations, sqrt(N p (1-p)) = 97 of 50001. */
Test(dropout, rate_and_mean)
{
    float *x = dropped(&quarter, DROP_HIDDEN, 1);
    int zero = 0;

    for (int i = 0; i < N; i++) {
        cr_expect(x[i] == 0 || x[i] == 4, "%g", (double)x[i]); /* 3 / (1 - 1/4) */
        zero += x[i] == 0;
    }
    cr_expect(fabs(zero - 0.25 * N) < 5 * sqrt(N * 0.25 * 0.75), "%d of %d", zero, N);
    free(x);
}

Test(dropout, any_number_of_threads)
{
    float *one = dropped(&quarter, DROP_FFN, 1);

    for (int threads = 2; threads <= 3; threads++) {
        float *many = dropped(&quarter, DROP_FFN, threads);
        cr_expect_eq(memcmp(one, many, N * sizeof(*one)), 0, "%d threads", threads);
        free(many);
    }
    free(one);
}

/* Of two independent masks p^2 + (1-p)^2 = 0.625 of the elements agree, again within 5 deviations;
 * small steps and neighbouring places are where a careless key would collide. */
Test(dropout, masks_depend_on_everything_that_names_them)
{
    const struct {
        struct dropout d;
        enum drop_place place;
    } others[] = {
        {{0.25f, 6, 17, 3}, DROP_HIDDEN}, {{0.25f, 5, 18, 3}, DROP_HIDDEN},
        {{0.25f, 5, 16, 3}, DROP_HIDDEN}, {{0.25f, 5, 17, 2}, DROP_HIDDEN},
        {{0.25f, 5, 17, 3}, DROP_FFN},    {{0.25f, 5, 17, 3}, DROP_EMBEDDING},
    };
    float *x = dropped(&quarter, DROP_HIDDEN, 1), *same = dropped(&quarter, DROP_HIDDEN, 1);

    cr_expect_eq(memcmp(x, same, N * sizeof(*x)), 0);
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        float *y = dropped(&others[i].d, others[i].place, 1);
        int agree = 0;
        for (int e = 0; e < N; e++)
            agree += x[e] == y[e];
        cr_expect(fabs(agree - 0.625 * N) < 5 * sqrt(N * 0.625 * 0.375), "%zu: %d", i, agree);
        free(y);
    }
    free(x), free(same);
}

Test(dropout, off_touches_nothing)
{
    const struct dropout off = {.p = 0, .seed = 5};
    float x[3] = {1, NAN, -0.0f}, y[3];

    memcpy(y, x, sizeof(x));
    dropout(&off, DROP_FINAL, x, 3, 2);
    cr_expect_eq(memcmp(x, y, sizeof(x)), 0);
}

/* SPDX-License-Identifier: MIT
 *
 * Dropout: its rate, what its masks depend on, and that a gradient is dropped like its value.
 * (Derivatives of whole models under a fixed mask: test_grad_lm.c; runs that continue to the same
 * bits: test_train.c.) */
#include "tests/support/kernel/token_masks.h"

enum { N = 50001 }; /* no multiple of four, and large enough for several threads */

static const struct dropout quarter = {.p = 0.25f, .seed = 5, .step = 17, .layer = 3};

static float *dropped(const struct dropout *d, enum drop_place place, int threads)
{
    float *x = room(N, sizeof(*x));

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
}

Test(dropout, any_number_of_threads)
{
    float *one = dropped(&quarter, DROP_FFN, 1);

    for (int threads = 2; threads <= 3; threads++) {
        float *many = dropped(&quarter, DROP_FFN, threads);
        cr_expect_eq(memcmp(one, many, N * sizeof(*one)), 0, "%d threads", threads);
    }
}

/* Of two independent masks p^2 + (1-p)^2 = 0.625 of the elements agree, again within 5 deviations;
 * small steps and neighbouring places are where a careless key would collide. */
Test(dropout, masks_depend_on_everything_that_names_them)
{
    const struct {
        struct dropout d;
        enum drop_place place;
    } others[] = {
        {{0.25f, 6, 17, 3, 0}, DROP_HIDDEN},    {{0.25f, 5, 18, 3, 0}, DROP_HIDDEN},
        {{0.25f, 5, 16, 3, 0}, DROP_HIDDEN},    {{0.25f, 5, 17, 2, 0}, DROP_HIDDEN},
        {{0.25f, 5, 17, 3, 1}, DROP_HIDDEN},    {{0.25f, 5, 17, 3, 0}, DROP_FFN},
        {{0.25f, 5, 17, 3, 0}, DROP_EMBEDDING},
    };
    float *x = dropped(&quarter, DROP_HIDDEN, 1), *same = dropped(&quarter, DROP_HIDDEN, 1);

    cr_expect_eq(memcmp(x, same, N * sizeof(*x)), 0);
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        float *y = dropped(&others[i].d, others[i].place, 1);
        int agree = 0;
        for (int e = 0; e < N; e++)
            agree += x[e] == y[e];
        cr_expect(fabs(agree - 0.625 * N) < 5 * sqrt(N * 0.625 * 0.375), "%zu: %d", i, agree);
    }
}

/* Parts of a batch, here of 5 elements, which blocks of four random words straddle. */
Test(dropout, parts_draw_what_the_whole_draws)
{
    enum { PART = 5 };
    float *whole = dropped(&quarter, DROP_HIDDEN, 1);
    int differ = 0;

    for (int part = 0; part < N / PART; part++) {
        struct dropout d = quarter;
        float x[PART] = {3, 3, 3, 3, 3}, encodings[PART] = {3, 3, 3, 3, 3}, first[PART];
        memcpy(first, x, sizeof(x));
        dropout(&quarter, DROP_POSITIONS, first, PART, 1);
        d.part = part;
        dropout(&d, DROP_HIDDEN, x, PART, 1);
        dropout(&d, DROP_POSITIONS, encodings, PART, 1);
        cr_expect_eq(memcmp(x, whole + (ptrdiff_t)part * PART, sizeof(x)), 0, "part %d", part);
        cr_expect_eq(memcmp(encodings, first, sizeof(first)), 0, "part %d", part);
        differ += memcmp(x, whole, sizeof(x)) != 0;
    }
    cr_expect(differ > 0);
}

Test(dropout, off_touches_nothing)
{
    const struct dropout off = {.p = 0, .seed = 5};
    float x[3] = {1, NAN, -0.0f}, y[3];

    memcpy(y, x, sizeof(x));
    dropout(&off, DROP_FINAL, x, 3, 2);
    cr_expect_eq(memcmp(x, y, sizeof(x)), 0);
}

/* ---- models --------------------------------------------------------------------------------- */

/* Whatever runs the layers of a model, and in which parts: of every variant with a usual network. */
Test(dropout, each_token_of_a_model_has_its_masks)
{
    int n = 0;

    for (int v = 0; variants[v]; v++) {
        const struct config c = config_default(variants[v], 12, 2, 6, 16, 2, 11);
        const int hidden = hidden_in_all_tokens(&c);
        n += hidden != NOT_TOLD;
        cr_expect(hidden <= 0, "%s: %d of 12 numbers are hidden in all tokens", variants[v]->name,
                  hidden);
    }
    cr_expect_gt(n, 40);
}

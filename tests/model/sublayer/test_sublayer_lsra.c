/* SPDX-License-Identifier: MIT
 *
 * Attention of half of the channels: what a cache holds, and which halves make sense. Cuts of a
 * text: test_lm.c, gradients: test_grad_lm.c; golden files compare the numbers. */
#include "tests/support/model.h"

static struct config halves(int split, int kernel, int heads)
{
    struct config c = config_default(variant_find("lite"), 12, 2, 3, 12, 2, 11);

    c.lsra.split = split;
    c.lsra.kernel = kernel;
    c.lsra.heads = heads;
    c.max_seq = 4;
    return c;
}

/* Rows of a layer's input for both halves; or keys and values, and the rows of the convolution. */
Test(sublayer_lsra, caches_are_as_wide_as_their_half)
{
    static const struct {
        enum mem_kind kind;
        int M, kernel;
        size_t floats; /* of a layer */
    } cases[] = {{MEM_HIDDEN, 40, 5, 40 * 12},
                 {MEM_HIDDEN, 2, 5, 4 * 12},
                 {MEM_KV, 40, 5, 40 * 2 * 6 + 4 * 12},
                 {MEM_KV, 40, 1, 40 * 2 * 6}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct config c = halves(6, cases[i].kernel, 2);
        cr_expect_eq(floats_remembered(&c, cases[i].kind, 4, cases[i].M), 2 * cases[i].floats,
                     "%zu", i);
    }
}

Test(sublayer_lsra, both_halves_have_channels)
{
    static const struct {
        int split, kernel, heads;
        bool sense;
    } cases[] = {{6, 5, 2, true},   {1, 1, 1, true},  {11, 3, 1, true}, {0, 5, 2, false},
                 {12, 5, 2, false}, {6, 0, 2, false}, {6, 5, 0, false}, {6, 5, 4, false}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct config c = halves(cases[i].split, cases[i].kernel, cases[i].heads);
        cr_expect_eq(config_check(&c, &failure) == OK, cases[i].sense, "%zu", i);
    }
}

/* SPDX-License-Identifier: MIT
 *
 * Windows of a text against the loops that published numbers were counted with, for all small
 * texts, windows and strides. */
#include "harness/learn/source/windows.h"
#include "tests/support/compared.h"

enum { MOST = 40 };

static struct windows begun(struct rule rule, size_t begin, size_t n, int given)
{
    struct windows w;

    windows_begin(&w, &rule, &(struct span){begin, begin + n, given});
    return w;
}

/* The documentation's loop: the labels of what a window shares with the one before are masked, and
 * a window's mean counts t - 1. */
Test(windows, strides_are_those_of_the_documented_loop)
{
    for (int n = 2; n <= MOST; n++)
        for (int P = 2; P <= 9; P++)
            for (int S = 1; S <= P; S++) {
                struct windows w =
                    begun((struct rule){.count = COUNT_HF, .P = P, .stride = S}, 7, (size_t)n, 0);
                struct window v;
                int before = 0;
                for (int b = 0; b < n; b += S) {
                    const int end = min_int(b + P, n), t = end - before;
                    int scored = 0;
                    for (int k = b + 1; k < end; k++) /* labels that are not masked */
                        scored += k >= end - t;
                    before = end;
                    if (scored) {
                        cr_assert(windows_next(&w, &v), "%d %d %d", n, P, S);
                        cr_expect(v.at == (size_t)(7 + b) && v.read == end - 1 - b &&
                                  v.scored == scored && v.weight == t - 1 && v.fresh);
                    }
                    if (end == n)
                        break;
                }
                cr_expect_not(windows_next(&w, &v), "%d %d %d", n, P, S);
            }
}

/* Each token but the first is predicted once; with as much before it as a window holds. */
Test(windows, lm_eval_predicts_each_token_once)
{
    for (int n = 2; n <= MOST; n++)
        for (int P = 1; P <= 9; P++) {
            struct windows w =
                begun((struct rule){.count = COUNT_LM_EVAL, .P = P}, 3, (size_t)n, 1);
            struct window v;
            int next = 1;
            while (windows_next(&w, &v)) {
                const int last = (int)v.at - 3 + v.read; /* that it predicts */
                cr_expect_eq(last - v.scored + 1, next);
                cr_expect(v.weight == v.scored && v.fresh);
                cr_expect(v.read == P || (last < P && v.at == 3), "%d %d", n, P);
                cr_expect(v.scored == P || last == n - 1);
                next = last + 1;
            }
            cr_expect_eq(next, n, "%d %d", n, P);
        }
}

Test(windows, a_stream_goes_on_and_begins_behind_what_is_given)
{
    for (int n = 2; n <= MOST; n++)
        for (int P = 1; P <= 5; P++)
            for (int past = 0; past <= 4; past += 2)
                for (int given = 0; given <= 3 && given < n; given++) {
                    struct windows w = begun(
                        (struct rule){.count = COUNT_STREAM, .P = P, .past = past, .batch = 1}, 2,
                        (size_t)n, given);
                    struct window v;
                    int read = 0, next = given > 1 ? given : 1;
                    while (windows_next(&w, &v)) {
                        const int again = v.read - v.fresh_ids;
                        NUMBERS({v.fresh, read == 0}, {again, min_int(past, read)},
                                {(int)v.at - 2, read - again});
                        read += v.fresh_ids;
                        cr_expect_eq(v.weight, v.scored);
                        if (v.scored)
                            cr_expect_eq(read - v.scored + 1, next);
                        next = v.scored ? read + 1 : next;
                    }
                    cr_expect(read == n - 1 && next == n, "%d %d %d %d: %d %d", n, P, past, given,
                              read, next);
                }
}

Test(windows, parts_are_equally_long)
{
    struct windows w = begun((struct rule){.count = COUNT_STREAM, .P = 16, .batch = 4}, 0, 226, 0);
    struct window v;
    int scored = 0;

    cr_expect_eq(w.part, 56);
    while (windows_next(&w, &v))
        scored += 4 * v.scored;
    cr_expect_eq(scored, 220);
}

Test(windows, one_token_has_none)
{
    for (enum count count = COUNT_STREAM; count <= COUNT_LM_EVAL; count++) {
        struct windows w = begun((struct rule){.count = count, .P = 8}, 0, 1, 0);
        cr_expect_not(windows_next(&w, &(struct window){0}));
    }
}

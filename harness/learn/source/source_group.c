/* SPDX-License-Identifier: MIT
 *
 * group:name=z2|z5|s5,ask=K. Uniform elements of a group of n, and after each K of them the product
 * of all so far, the newest on the left: z2 and z5 add modulo 2 and 5, s5 composes permutations of
 * five. Elements cost ln n. A product costs nothing if the one before is within reach (K + 1 back;
 * at first, all elements), otherwise ln n, because one hidden element hides it. Products are n more
 * symbols. */
#include "synthetic.h"

enum { NAME, ASK };
enum { Z2, Z5, S5, POINTS = 5 };
static const char *const names[] = {"z2", "z5", "s5", NULL};

static int order(const struct synthetic *s)
{
    static const int of[] = {[Z2] = 2, [Z5] = 5, [S5] = 120};

    return of[source_int(s, NAME)];
}

static int vocab(const struct synthetic *s) { return 2 * order(s); }
static size_t block(const struct synthetic *s) { return (size_t)s->value[ASK] + 1; }

/* Permutation number n: its digits in the factorial base say which of the points left comes next.
 */
static void unrank(int p[POINTS], int n)
{
    int left[POINTS];

    for (int i = 0; i < POINTS; i++)
        left[i] = i;
    for (int i = 0, f = 24; i < POINTS; f /= i < POINTS - 1 ? POINTS - 1 - i : 1, i++) {
        const int k = n / f;
        n %= f;
        p[i] = left[k];
        for (int j = k; j + 1 < POINTS - i; j++)
            left[j] = left[j + 1];
    }
}

static int rank_of(const int p[POINTS])
{
    int n = 0;

    for (int i = 0; i < POINTS; i++) {
        int smaller = 0;
        for (int j = i + 1; j < POINTS; j++)
            smaller += p[j] < p[i];
        n = n * (POINTS - i) + smaller;
    }
    return n;
}

/* x after y */
static int product(const struct synthetic *s, int x, int y)
{
    int p[POINTS], q[POINTS], r[POINTS];

    if (source_int(s, NAME) != S5)
        return (x + y) % order(s);
    unrank(p, x);
    unrank(q, y);
    for (int i = 0; i < POINTS; i++)
        r[i] = p[q[i]];
    return rank_of(r);
}

static bool answers(const struct synthetic *s, const uint8_t *x, size_t at)
{
    return at % block(s) == block(s) - 1;
}

static void fill(const struct synthetic *s, uint64_t seed, uint8_t *x, size_t n)
{
    const uint64_t element = rng_stream("source.group");
    const int order_of = order(s);
    int state = 0; /* number 0 is the identity */

    for (size_t t = 0; t < n; t++) {
        if (answers(s, x, t)) {
            x[t] = (uint8_t)(order_of + state);
            continue;
        }
        x[t] = (uint8_t)source_draw(seed, element, t, order_of);
        state = product(s, x[t], state);
    }
}

static double nll(const struct synthetic *s, const uint8_t *x, size_t at, struct source_view view)
{
    const bool known = answers(s, x, at) && (view.reach >= block(s) || view.reach == at);

    return known ? 0 : log(order(s));
}

const struct source_kind source_group = {
    .name = "group",
    .about = "elements of a group, and after each `ask` of them their product so far",
    .keys = {{"name", Z2, 0, 0, false, names}, {"ask", 8, 1, 1e9, false, NULL}},
    SOURCE_HOOKS,
    .answers = answers,
};

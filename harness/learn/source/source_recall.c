/* SPDX-License-Identifier: MIT
 *
 * recall:keys=A,values=B,p=P. Pairs of a key, uniform over A, and a value of B: the key's last one
 * with probability P, otherwise a new uniform one that replaces it. Keys cost ln A. If the key has
 * occurred within reach, its value has probability P + (1-P)/B if it is the same again and (1-P)/B
 * if not, otherwise 1/B. Answers are the values of keys that have occurred. */
#include "synthetic.h"

enum { KEYS, VALUES, P };

static int vocab(const struct synthetic *s) { return source_int(s, KEYS) + source_int(s, VALUES); }

static void fill(const struct synthetic *s, uint64_t seed, uint8_t *x, size_t n)
{
    const uint64_t key = rng_stream("source.recall.key"), keep = rng_stream("source.recall.keep"),
                   value = rng_stream("source.recall.value");
    const int A = source_int(s, KEYS), B = source_int(s, VALUES);
    int last[256] = {0}; /* value + 1 */

    for (size_t t = 0; t < n; t++) {
        if (t % 2 == 0) {
            x[t] = (uint8_t)source_draw(seed, key, t, A);
            continue;
        }
        int *const of = &last[x[t - 1]];
        if (!*of || rng_uniform(seed, keep, t) >= s->value[P])
            *of = 1 + source_draw(seed, value, t, B);
        x[t] = (uint8_t)(A + *of - 1);
    }
}

/* How far back the value stands that the key of the value at `at` had before; 0 = not within
 * reach. */
static size_t value_before(const uint8_t *x, size_t at, size_t reach)
{
    for (size_t back = 2; back <= reach && back < at; back += 2)
        if (x[at - back - 1] == x[at - 1])
            return back;
    return 0;
}

static double nll(const struct synthetic *s, const uint8_t *x, size_t at, struct source_view view)
{
    const double B = s->value[VALUES], other = (1 - s->value[P]) / B;

    if (at % 2 == 0)
        return log(s->value[KEYS]);
    const size_t back = value_before(x, at, view.reach);
    if (!back)
        return log(B);
    return -log(x[at] == x[at - back] ? s->value[P] + other : other);
}

static bool answers(const struct synthetic *s, const uint8_t *x, size_t at)
{
    return at % 2 && value_before(x, at, at);
}

const struct source_kind source_recall = {
    .name = "recall",
    .about = "pairs of key and value; a value is the key's last one with probability p",
    .keys = {{"keys", 16, 1, 255, false, NULL},
             {"values", 16, 1, 255, false, NULL},
             {"p", 0.9, 0, 1, true, NULL}},
    SOURCE_HOOKS,
    .answers = answers,
};

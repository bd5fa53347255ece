/* SPDX-License-Identifier: MIT
 *
 * copy:lag=D,p=P,alphabet=A,groups=G. Each symbol repeats the one D positions back with probability
 * P and is otherwise uniform over the A/G symbols of a group; groups come in turn, so that any symbol
 * before tells which is next, and D is a whole number of turns. The turn counts as known, as places of
 * episodes do. With n = A/G, if the symbol D back is in reach, the next one has probability P + (1-P)/n
 * if it is the same and (1-P)/n if not; out of reach each of the group has 1/n. */
#include "synthetic.h"

enum { LAG, P, ALPHABET, GROUPS };

static enum status check(const struct synthetic *s, struct err *e)
{
    const int groups = source_int(s, GROUPS), lag = source_int(s, LAG);

    if (s->value[P] >= 1)
        return fail(e, E_USAGE, "p %g repeats for ever  -> use p below 1", s->value[P]);
    if (source_int(s, ALPHABET) % groups || lag % groups)
        return fail(e, E_USAGE,
                    "groups %d of %d symbols, repeated %d back  -> use a divisor of both", groups,
                    source_int(s, ALPHABET), lag);
    return OK;
}

static int of_group(const struct synthetic *s)
{
    return source_int(s, ALPHABET) / source_int(s, GROUPS);
}

static int vocab(const struct synthetic *s) { return source_int(s, ALPHABET); }

static void fill(const struct synthetic *s, uint64_t seed, uint8_t *x, size_t n)
{
    const uint64_t choice = rng_stream("source.choice"), fresh = rng_stream("source.symbol");
    const size_t lag = (size_t)s->value[LAG];

    for (size_t t = 0; t < n; t++) {
        const bool repeat = t >= lag && rng_uniform(seed, choice, t) < s->value[P];
        const int of = of_group(s), group = (int)(t % (size_t)source_int(s, GROUPS));
        x[t] = repeat ? x[t - lag] : (uint8_t)(group * of + source_draw(seed, fresh, t, of));
    }
}

static double nll(const struct synthetic *s, const uint8_t *x, size_t at, struct source_view view)
{
    const size_t lag = (size_t)s->value[LAG];
    const double n = of_group(s), other = (1 - s->value[P]) / n;

    if (view.reach < lag)
        return log(n);
    return -log(x[at] == x[at - lag] ? s->value[P] + other : other);
}

const struct source_kind source_copy = {
    .name = "copy",
    .about = "each symbol repeats the one `lag` back with probability p, or is a new one of the "
             "next group",
    .keys = {{"lag", 192, 1, 1e9, false, NULL},
             {"p", 0.9, 0, 1, true, NULL},
             {"alphabet", 16, 2, 256, false, NULL},
             {"groups", 1, 1, 128, false, NULL}},
    .check = check,
    SOURCE_HOOKS,
};

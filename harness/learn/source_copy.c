/* SPDX-License-Identifier: MIT
 *
 * copy:lag=D,p=P,alphabet=A. Each symbol repeats the one D positions back with probability P and is
 * otherwise uniform over A symbols. If the symbol D back is in reach, the next one has probability
 * P + (1-P)/A if it is the same and (1-P)/A if not; out of reach everything is 1/A. */
#include "source.h"

#include <math.h>

enum { LAG, P, ALPHABET };

static enum status check(const struct synthetic *s, struct err *e)
{
    return s->value[P] < 1
               ? OK
               : fail(e, E_USAGE, "p %g repeats for ever  -> use p below 1", s->value[P]);
}

static int vocab(const struct synthetic *s) { return source_int(s, ALPHABET); }

static void fill(const struct synthetic *s, uint64_t seed, uint8_t *x, size_t n)
{
    const uint64_t choice = rng_stream("source.choice"), fresh = rng_stream("source.symbol");
    const size_t lag = (size_t)s->value[LAG];

    for (size_t t = 0; t < n; t++) {
        const bool repeat = t >= lag && rng_uniform(seed, choice, t) < s->value[P];
        x[t] = repeat ? x[t - lag] : (uint8_t)source_draw(seed, fresh, t, vocab(s));
    }
}

static double nll(const struct synthetic *s, const uint8_t *x, size_t at, size_t reach,
                  struct source_memo *memo)
{
    const size_t lag = (size_t)s->value[LAG];
    const double other = (1 - s->value[P]) / s->value[ALPHABET];

    (void)memo;
    if (reach < lag)
        return log(s->value[ALPHABET]);
    return -log(x[at] == x[at - lag] ? s->value[P] + other : other);
}

const struct source_kind source_copy = {
    .name = "copy",
    .about = "each symbol repeats the one `lag` back with probability p, or is a new one",
    .keys = {{"lag", 192, 1, 1e9, false, NULL},
             {"p", 0.9, 0, 1, true, NULL},
             {"alphabet", 16, 2, 256, false, NULL}},
    .check = check,
    .vocab = vocab,
    .fill = fill,
    .nll = nll,
};

/* SPDX-License-Identifier: MIT
 *
 * cue:gap=N,alphabet=A. Episodes of a cue (one of A), N symbols of noise (of A others), a query,
 * and the cue again. Cue and noise cost ln A, the query nothing, the answer nothing if the cue is
 * within reach and ln A otherwise. */
#include "synthetic.h"

enum { GAP, ALPHABET };

static int vocab(const struct synthetic *s) { return 2 * source_int(s, ALPHABET) + 1; }
static size_t length(const struct synthetic *s) { return (size_t)s->value[GAP] + 3; }

static void fill(const struct synthetic *s, uint64_t seed, uint8_t *x, size_t n)
{
    const uint64_t symbol = rng_stream("source.cue");
    const size_t len = length(s);
    const int A = source_int(s, ALPHABET);

    for (size_t t = 0; t < n; t++) {
        const size_t q = t % len;
        x[t] = q == len - 1   ? x[t - len + 1]
               : q == len - 2 ? (uint8_t)(2 * A)
                              : (uint8_t)(source_draw(seed, symbol, t, A) + (q == 0 ? A : 0));
    }
}

static bool answers(const struct synthetic *s, const uint8_t *x, size_t at)
{
    return at % length(s) == length(s) - 1;
}

static double nll(const struct synthetic *s, const uint8_t *x, size_t at, struct source_view view)
{
    const bool known =
        at % length(s) == length(s) - 2 || (answers(s, x, at) && view.reach >= length(s) - 1);

    return known ? 0 : log(s->value[ALPHABET]);
}

const struct source_kind source_cue = {
    .name = "cue",
    .about = "a cue, `gap` symbols of noise, a query, and the cue again",
    .keys = {{"gap", 64, 0, 1e9, false, NULL}, {"alphabet", 16, 2, 127, false, NULL}},
    SOURCE_HOOKS,
    .answers = answers,
};

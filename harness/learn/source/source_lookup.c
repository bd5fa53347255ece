/* SPDX-License-Identifier: MIT
 *
 * lookup:len=N,alphabet=A,gram=g (Jelassi et al. 2024, "Repeat After Me"). Episodes of N symbols
 * x_1..x_N, uniform over A, a bar, and then
 *
 *   gram=0: x_1..x_N again, all of them answers;
 *   gram=g: g neighbours of them from a uniform place, and the answer: the symbol after that place.
 *
 * x cost ln A each, the bar nothing. A copied symbol costs nothing within reach, N + 1 back,
 * otherwise ln A. Of a gram and its answer q_0..q_g the next symbol has probability
 *
 *   sum_i prod_{j<=k} P(x_{i+j} = q_j) / sum_i prod_{j<k} P(x_{i+j} = q_j)
 *
 * over the places i, where P is 1 or 0 within reach and 1/A beyond: nothing for the answer where
 * the gram occurs once. A model that can do it does so at lengths that it was not trained with:
 * score it with another `len`. */
#include "synthetic.h"

enum { LEN, ALPHABET, GRAM };

static int vocab(const struct synthetic *s) { return source_int(s, ALPHABET) + 1; }

static enum status check(const struct synthetic *s, struct err *e)
{
    return s->value[GRAM] < s->value[LEN]
               ? OK
               : fail(e, E_USAGE, "gram %g is not shorter than len %g  -> use a shorter one",
                      s->value[GRAM], s->value[LEN]);
}

/* Symbols of an episode. */
static size_t whole(const struct synthetic *s)
{
    const size_t N = (size_t)s->value[LEN], g = (size_t)s->value[GRAM];

    return N + 1 + (g ? g + 1 : N);
}

static void fill(const struct synthetic *s, uint64_t seed, uint8_t *x, size_t n)
{
    const uint64_t symbol = rng_stream("source.lookup.symbol"),
                   place = rng_stream("source.lookup.place");
    const size_t N = (size_t)s->value[LEN];
    const int g = source_int(s, GRAM), A = source_int(s, ALPHABET);

    for (size_t t = 0; t < n; t++) {
        const size_t q = t % whole(s), begin = t - q;
        const size_t from = g ? (size_t)source_draw(seed, place, begin, (int)N - g) : 0;
        x[t] = q < N    ? (uint8_t)source_draw(seed, symbol, t, A)
               : q == N ? (uint8_t)A
                        : x[begin + from + q - N - 1];
    }
}

/* Nats of the symbol at place k of the gram and its answer. */
static double gram_nll(const struct synthetic *s, const uint8_t *x, size_t at, size_t reach, int k)
{
    const size_t N = (size_t)s->value[LEN], begin = at - N - 1 - (size_t)k;
    const size_t from = source_seen(at, reach, begin);
    const uint8_t *const q = x + begin + N + 1;
    double before = 0, with = 0;

    for (size_t i = 0; i < N - (size_t)s->value[GRAM]; i++) {
        double p = 1;
        for (int j = 0; j < k; j++) /* those of q that are hidden tell nothing */
            p *= begin + N + 1 + (size_t)j < from ? 1
                 : begin + i + (size_t)j < from   ? 1 / s->value[ALPHABET]
                                                  : x[begin + i + (size_t)j] == q[j];
        before += p;
        with += p * (begin + i + (size_t)k < from ? 1 / s->value[ALPHABET]
                                                  : x[begin + i + (size_t)k] == q[k]);
    }
    return log(before / with);
}

static double nll(const struct synthetic *s, const uint8_t *x, size_t at, struct source_view view)
{
    const size_t N = (size_t)s->value[LEN], q = at % whole(s);

    if (q == N)
        return 0;
    if (q > N && s->value[GRAM] > 0)
        return gram_nll(s, x, at, view.reach, (int)(q - N - 1));
    return q > N && view.reach > N ? 0 : log(s->value[ALPHABET]);
}

static bool answers(const struct synthetic *s, const uint8_t *x, size_t at)
{
    const size_t q = at % whole(s);

    return s->value[GRAM] > 0 ? q == whole(s) - 1 : q > (size_t)s->value[LEN];
}

const struct source_kind source_lookup = {
    .name = "lookup",
    .about = "a string, then a copy of it (gram=0), or part of it and the symbol that followed",
    .keys = {{"len", 32, 1, 1 << 16, false, NULL},
             {"alphabet", 26, 2, 255, false, NULL},
             {"gram", 0, 0, 64, false, NULL}},
    .check = check,
    SOURCE_HOOKS,
    .answers = answers,
};

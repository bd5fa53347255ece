/* SPDX-License-Identifier: MIT
 *
 * memorisation:alphabet=A,gram=g,values=B (Poli et al. 2024, "Mechanistic Design and Scaling of
 * Hybrid Architectures"). Facts: g symbols, uniform over A, and the value of these, one of B. The
 * value is a function drawn once for all texts of a seed, so the context tells nothing about it:
 * weights must hold A^g values. A symbol of the key costs ln A. The value costs nothing if its key
 * is within reach. Otherwise it is one of those that the keys with the visible end have, as often
 * as it is among them. Answers are all values. */
#include "synthetic.h"

enum { ALPHABET, GRAM, VALUES };
enum { MOST_FACTS = 1 << 16 };

static int alphabet(const struct synthetic *s) { return source_int(s, ALPHABET); }
static int vocab(const struct synthetic *s) { return alphabet(s) + source_int(s, VALUES); }
static size_t gram(const struct synthetic *s) { return (size_t)s->value[GRAM]; }
static double facts(const struct synthetic *s) { return pow(s->value[ALPHABET], s->value[GRAM]); }

static enum status check(const struct synthetic *s, struct err *e)
{
    return facts(s) <= MOST_FACTS
               ? OK
               : fail(e, E_USAGE,
                      "alphabet %g to the power of gram %g is %g facts  -> use %d at most",
                      s->value[ALPHABET], s->value[GRAM], facts(s), (int)MOST_FACTS);
}

/* The value of the key whose symbols are the digits of `key`. */
static uint8_t value_of(const struct synthetic *s, uint64_t key)
{
    const uint64_t stream = rng_stream("source.memorisation.fact");

    return (uint8_t)(alphabet(s) + source_draw(s->seed, stream, key, source_int(s, VALUES)));
}

/* The last n symbols before `at` as digits. */
static uint64_t digits(const struct synthetic *s, const uint8_t *x, size_t at, size_t n)
{
    uint64_t key = 0;

    for (size_t t = at - n; t < at; t++)
        key = key * (uint64_t)alphabet(s) + x[t];
    return key;
}

static bool answers(const struct synthetic *s, const uint8_t *x, size_t at)
{
    return at % (gram(s) + 1) == gram(s);
}

static void fill(const struct synthetic *s, uint64_t seed, uint8_t *x, size_t n)
{
    const uint64_t symbol = rng_stream("source.memorisation.key");

    for (size_t t = 0; t < n; t++)
        x[t] = answers(s, x, t) ? value_of(s, digits(s, x, t, gram(s)))
                                : (uint8_t)source_draw(seed, symbol, t, alphabet(s));
}

static double nll(const struct synthetic *s, const uint8_t *x, size_t at, struct source_view view)
{
    const size_t seen = view.reach < gram(s) ? view.reach : gram(s);
    const double hidden = pow(s->value[ALPHABET], (double)(gram(s) - seen));
    const uint64_t step = (uint64_t)pow(s->value[ALPHABET], (double)seen);
    double same = 0;

    if (!answers(s, x, at))
        return log(s->value[ALPHABET]);
    if (seen == gram(s))
        return 0;
    for (uint64_t h = 0; h < (uint64_t)hidden; h++)
        same += value_of(s, h * step + digits(s, x, at, seen)) == x[at];
    return log(hidden) - log(same);
}

const struct source_kind source_memorisation = {
    .name = "memorisation",
    .about = "`gram` symbols and their value, always the same one",
    .keys = {{"alphabet", 32, 1, 255, false, NULL},
             {"gram", 2, 1, 8, false, NULL},
             {"values", 32, 2, 255, false, NULL}},
    .check = check,
    SOURCE_HOOKS,
    .answers = answers,
};

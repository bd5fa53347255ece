/* SPDX-License-Identifier: MIT
 *
 * compression:n=N,alphabet=A,ask=K (after Poli et al. 2024, "Mechanistic Design and Scaling of
 * Hybrid Architectures"). Episodes of N symbols, uniform over A, a mark, and K times a place, one of
 * N, and the symbol that stands there: a state must hold all N symbols and their places. There, each
 * symbol is decoded from the state at the mark alone; a text cannot keep attention from looking
 * back, so here only models with a state are put to that test.
 *
 * Symbols cost ln A, the mark nothing, a place ln N. The answer costs nothing if its symbol, or an
 * earlier answer about the same place, is within reach, and ln A otherwise. An answer whose place
 * has just left the reach counts as known, as in `recall`. */
#include "synthetic.h"

enum { COUNT, ALPHABET, ASK };

static size_t count(const struct synthetic *s) { return (size_t)s->value[COUNT]; }
static int mark(const struct synthetic *s) { return source_int(s, ALPHABET); }
static int vocab(const struct synthetic *s) { return mark(s) + 1 + source_int(s, COUNT); }
static size_t period(const struct synthetic *s) { return count(s) + 1 + 2 * (size_t)s->value[ASK]; }

static bool answers(const struct synthetic *s, const uint8_t *x, size_t at)
{
    const size_t q = at % period(s);

    return q > count(s) && (q - count(s)) % 2 == 0;
}

/* Where the symbol stands that the answer at `at` is about. */
static size_t asked(const struct synthetic *s, const uint8_t *x, size_t at)
{
    return at - at % period(s) + (size_t)(x[at - 1] - mark(s) - 1);
}

static void fill(const struct synthetic *s, uint64_t seed, uint8_t *x, size_t n)
{
    const uint64_t symbol = rng_stream("source.compression.symbol"),
                   place = rng_stream("source.compression.place");

    for (size_t t = 0; t < n; t++) {
        const size_t q = t % period(s);
        if (q < count(s))
            x[t] = (uint8_t)source_draw(seed, symbol, t, mark(s));
        else if (q == count(s))
            x[t] = (uint8_t)mark(s);
        else if (answers(s, x, t))
            x[t] = x[asked(s, x, t)];
        else
            x[t] = (uint8_t)(mark(s) + 1 + source_draw(seed, place, t, source_int(s, COUNT)));
    }
}

static double nll(const struct synthetic *s, const uint8_t *x, size_t at, struct source_view view)
{
    const size_t q = at % period(s), from = source_seen(at, view.reach, at - q);

    if (q == count(s))
        return 0;
    if (!answers(s, x, at))
        return log(q < count(s) ? s->value[ALPHABET] : s->value[COUNT]);
    if (from < at && asked(s, x, at) >= from)
        return 0;
    for (size_t t = at - q + count(s) + 2; t < at; t += 2)
        if (t >= from && x[t - 1] == x[at - 1])
            return 0;
    return log(s->value[ALPHABET]);
}

const struct source_kind source_compression = {
    .name = "compression",
    .about = "n symbols, then some of them by their places",
    .keys = {{"n", 16, 1, 253, false, NULL},
             {"alphabet", 16, 2, 254, false, NULL},
             {"ask", 8, 1, 1 << 15, false, NULL}},
    SOURCE_HOOKS,
    .answers = answers,
};

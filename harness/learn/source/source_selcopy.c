/* SPDX-License-Identifier: MIT
 *
 * selcopy:n=K,len=N,alphabet=A (selective copying: Gu and Dao 2023, "Mamba"; Poli et al. 2024,
 * "Mechanistic Design and Scaling of Hybrid Architectures"). Episodes of N symbols: K data symbols,
 * uniform over A, at uniform places among S = N - K - 1 symbols, the others blank; a query; the K
 * in their order.
 *
 * With d of v visible symbols of these S being data, the next is data with probability
 * (K - d) / (S - v), then one of A. The query costs nothing. The j-th answer costs nothing if it is
 * within reach, which is if d >= K - j (they are the last ones), otherwise ln A. */
#include "synthetic.h"

enum { COUNT, LEN, ALPHABET };

static int blank(const struct synthetic *s) { return source_int(s, ALPHABET); }
static int query(const struct synthetic *s) { return source_int(s, ALPHABET) + 1; }
static int vocab(const struct synthetic *s) { return source_int(s, ALPHABET) + 2; }
static size_t length(const struct synthetic *s) { return (size_t)s->value[LEN]; }
static size_t places(const struct synthetic *s)
{
    return (size_t)(s->value[LEN] - s->value[COUNT]) - 1;
}

static enum status check(const struct synthetic *s, struct err *e)
{
    const double least = 2 * s->value[COUNT] + 1;

    return s->value[LEN] >= least
               ? OK
               : fail(e, E_USAGE, "len %g has no room for n %g twice  -> use %g or more",
                      s->value[LEN], s->value[COUNT], least);
}

/* The j-th data symbol of the episode that begins there. */
static uint8_t datum(const struct synthetic *s, const uint8_t *x, size_t begin, size_t j)
{
    size_t t = begin;

    for (size_t seen = 0;; t++) {
        seen += x[t] != blank(s);
        if (seen > j)
            return x[t];
    }
}

static void fill(const struct synthetic *s, uint64_t seed, uint8_t *x, size_t n)
{
    const uint64_t place = rng_stream("source.selcopy.place"),
                   symbol = rng_stream("source.selcopy.symbol");
    const size_t len = length(s), S = places(s);
    size_t done = 0; /* data symbols of this episode */

    for (size_t t = 0; t < n; t++) {
        const size_t q = t % len;
        done = q == 0 ? 0 : done;
        if (q == S)
            x[t] = (uint8_t)query(s);
        else if (q > S)
            x[t] = datum(s, x, t - q, q - S - 1);
        else if (rng_uniform(seed, place, t) * (double)(S - q) < s->value[COUNT] - (double)done) {
            x[t] = (uint8_t)source_draw(seed, symbol, t, blank(s));
            done++;
        } else
            x[t] = (uint8_t)blank(s);
    }
}

static double nll(const struct synthetic *s, const uint8_t *x, size_t at, struct source_view view)
{
    const size_t S = places(s), q = at % length(s), begin = at - q;
    const size_t from = source_seen(at, view.reach, begin), end = begin + (q < S ? q : S);
    const double K = s->value[COUNT], A = s->value[ALPHABET];
    size_t d = 0, v = 0;

    for (size_t t = from; t < end; t++, v++)
        d += x[t] != blank(s);
    if (q == S)
        return 0;
    if (q > S)
        return (double)d >= K - (double)(q - S - 1) ? 0 : log(A);
    const double data = (K - (double)d) / (double)(S - v);
    return x[at] == blank(s) ? -log1p(-data) : log(A) - log(data);
}

static struct source_pair pair(const struct synthetic *s)
{
    return (struct source_pair){(int)places(s), source_int(s, COUNT)};
}

static bool answers(const struct synthetic *s, const uint8_t *x, size_t at)
{
    return at % length(s) > places(s);
}

const struct source_kind source_selcopy = {
    .name = "selcopy",
    .about = "n symbols scattered among blanks, then asked in order",
    .keys = {{"n", 16, 1, 1 << 15, false, NULL},
             {"len", 256, 3, 1 << 16, false, NULL},
             {"alphabet", 16, 2, 254, false, NULL}},
    .check = check,
    SOURCE_HOOKS,
    .answers = answers,
    .pair = pair,
};

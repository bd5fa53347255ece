/* SPDX-License-Identifier: MIT
 *
 * mqar:pairs=D,len=N,vocab=V (multi-query associative recall: Arora et al. 2023, "Zoology").
 * Episodes of N symbols begin with D pairs: a key, below V/2 and not 0, and a value, the rest; no
 * key and no value twice. Then come slots of two, and every key is asked once: it stands in slot g
 * with probability proportional to g^(a-1), a = 0.01, g = 1, 2, ..., without two in one slot, and
 * its value follows. Slots without a key have two symbols drawn from all that are no key of the
 * episode (the published ones may by chance be one, which only a masked loss can bear).
 *
 * The loss is that of answers, which count as known to be answers: nothing if the pair is within
 * reach, otherwise the value is one of those not within reach, or the one whose key just is not, in
 * one of so many cases as there are keys that it may belong to. Other symbols have no floor. */
#include "synthetic.h"

enum { PAIRS, LEN, VOCAB };
enum { MOST = 256 };
static const double POWER = 0.01;

static int vocab(const struct synthetic *s) { return source_int(s, VOCAB); }
static int first_value(const struct synthetic *s) { return vocab(s) / 2; }

static enum status check(const struct synthetic *s, struct err *e)
{
    const int D = source_int(s, PAIRS), N = source_int(s, LEN), V = vocab(s);

    if (N % 2 || 4 * D > N || V <= N)
        return fail(
            e, E_USAGE,
            "pairs %d, len %d, vocab %d  -> use an even len of 4 pairs or more, and a larger vocab",
            D, N, V);
    return D < first_value(s) ? OK
                              : fail(e, E_USAGE, "pairs %d of vocab %d  -> use fewer than %d", D, V,
                                     first_value(s));
}

/* The first n of to[] become n different ones of the `most` numbers from `first`; numbers `at` and
 * on of the stream choose. */
static void choose(uint8_t *to, int n, int first, int most, uint64_t seed, uint64_t stream,
                   uint64_t at)
{
    for (int i = 0; i < most; i++)
        to[i] = (uint8_t)(first + i);
    for (int i = 0; i < n; i++) {
        const int k = i + source_draw(seed, stream, at + (uint64_t)i, most - i);
        const uint8_t chosen = to[k];
        to[k] = to[i];
        to[i] = chosen;
    }
}

/* slot[i] of each key: an exponential race, whose order is that of draws without replacement. */
static void place(int *slot, int D, int slots, uint64_t seed, uint64_t at)
{
    const uint64_t stream = rng_stream("source.mqar.slot");
    double time[MOST];

    for (int g = 0; g < slots; g++)
        time[g] = -log(rng_uniform(seed, stream, at + (uint64_t)g)) * pow(g + 1, 1 - POWER);
    for (int i = 0; i < D; i++) {
        slot[i] = 0;
        for (int g = 1; g < slots; g++)
            slot[i] = time[g] < time[slot[i]] ? g : slot[i];
        time[slot[i]] = INFINITY;
    }
}

static void episode(const struct synthetic *s, uint64_t seed, uint64_t number, uint8_t x[MOST])
{
    const uint64_t filler = rng_stream("source.mqar.filler");
    const int D = source_int(s, PAIRS), N = source_int(s, LEN), V = vocab(s),
              first = first_value(s);
    const uint64_t at = number * MOST;
    uint8_t keys[MOST] = {0}, values[MOST] = {0}, others[MOST] = {0};
    int slot[MOST], n = 0;

    choose(keys, D, 1, first - 1, seed, rng_stream("source.mqar.key"), at);
    choose(values, D, first, V - first, seed, rng_stream("source.mqar.value"), at);
    place(slot, D, N / 2 - D, seed, at);
    for (int v = 0; v < V; v++)
        if (!memchr(keys, v, (size_t)D))
            others[n++] = (uint8_t)v;
    for (int t = 2 * D; t < N; t++)
        x[t] = others[source_draw(seed, filler, at + (uint64_t)t, n)];
    for (int i = 0; i < D; i++) {
        uint8_t *const asked = x + 2 * D + 2 * slot[i];
        x[2 * i] = asked[0] = keys[i];
        x[2 * i + 1] = asked[1] = values[i];
    }
}

static void fill(const struct synthetic *s, uint64_t seed, uint8_t *x, size_t n)
{
    const size_t N = (size_t)s->value[LEN];
    uint8_t one[MOST];

    for (size_t t = 0; t < n; t += N) {
        episode(s, seed, t / N, one);
        memcpy(x + t, one, n - t < N ? n - t : N);
    }
}

/* The place of the key's value among the pairs of the episode that begins there; 0 = it has none.
 */
static size_t value_of(const struct synthetic *s, const uint8_t *x, size_t begin, uint8_t key)
{
    for (size_t i = 0; i < (size_t)s->value[PAIRS]; i++)
        if (x[begin + 2 * i] == key)
            return begin + 2 * i + 1;
    return 0;
}

static bool answers(const struct synthetic *s, const uint8_t *x, size_t at)
{
    const size_t q = at % (size_t)s->value[LEN];

    return q % 2 && q > 2 * (size_t)s->value[PAIRS] && value_of(s, x, at - q, x[at - 1]);
}

/* Is the key of the pair whose value stands at `pair` asked in [from, at)? */
static bool asked(const uint8_t *x, size_t pair, size_t pairs_end, size_t from, size_t at)
{
    for (size_t t = pairs_end; t + 1 < at; t += 2)
        if (t + 1 >= from && x[t] == x[pair - 1])
            return true;
    return false;
}

static double nll(const struct synthetic *s, const uint8_t *x, size_t at, struct source_view view)
{
    const size_t begin = at - at % (size_t)s->value[LEN], from = source_seen(at, view.reach, begin);
    const size_t pairs_end = begin + 2 * (size_t)s->value[PAIRS];
    int left = vocab(s) - first_value(s), open = 0;
    size_t cut = 0; /* the value within reach of an open pair */

    if (!answers(s, x, at))
        return NAN;
    const size_t its = value_of(s, x, begin, x[at - 1]);
    if (its > from)
        return 0;
    for (size_t t = begin + 1; t < pairs_end; t += 2) {
        const bool known = t > from || asked(x, t, pairs_end, from, at);
        open += !known; /* its key is hidden, and it may be the one asked for */
        cut = t == from && !known ? t : cut;
        left -= known || t == from;
    }
    if (!cut)
        return log(left);
    return its == cut ? log(open) : log(left) - log1p(-1.0 / open);
}

const struct source_kind source_mqar = {
    .name = "mqar",
    .about = "pairs of key and value, then every key asked once",
    .keys = {{"pairs", 8, 1, 63, false, NULL},
             {"len", 64, 4, 254, false, NULL},
             {"vocab", 128, 5, 256, false, NULL}},
    .check = check,
    SOURCE_HOOKS,
    .answers = answers,
};

/* SPDX-License-Identifier: MIT
 *
 * Pairs of a source and what is made of it: n symbols, uniform over A, a mark, and n more.
 *
 *   reverse:n=N,alphabet=A    the source from its end (Sutskever et al. 2014 feed theirs so)
 *   translate:n=N,alphabet=A  each symbol as another, by a permutation that belongs to the seed
 *   sort:n=N,alphabet=A       the source in order
 *
 * A source symbol costs ln A, the mark nothing. The j-th symbol of a target is, if reversed or
 * translated, a function of one of the source, and costs nothing if that is in reach, else ln A: all
 * others tell nothing about it. Sorted, it is y_j = b if and only if fewer than j+1 symbols of the
 * source are below b and more than j are at most b. With u symbols of the source out of reach, which
 * are uniform, the chance of y_j = b given what is in reach is that of all these conditions over
 * that of all but the last: sums over how many of the u are below each symbol, one after the other. */
#include "synthetic.h"

enum { COUNT, ALPHABET, MOST_SORTED = 256 };

static size_t count(const struct synthetic *s) { return (size_t)s->value[COUNT]; }
static int alphabet(const struct synthetic *s) { return source_int(s, ALPHABET); }
static int vocab(const struct synthetic *s) { return alphabet(s) + 1; }
static size_t period(const struct synthetic *s) { return 2 * count(s) + 1; }

static struct source_pair pair(const struct synthetic *s)
{
    return (struct source_pair){source_int(s, COUNT), source_int(s, COUNT)};
}

static bool answers(const struct synthetic *s, const uint8_t *x, size_t at)
{
    return at % period(s) > count(s);
}

/* Symbol x in the other language. */
static uint8_t translated(const struct synthetic *s, uint8_t x)
{
    const uint64_t stream = rng_stream("source.translate");
    uint8_t to[256] = {0};

    for (int i = 0; i < alphabet(s); i++)
        to[i] = (uint8_t)i;
    for (int i = alphabet(s) - 1; i > 0; i--) { /* Fisher and Yates */
        const int k = source_draw(s->seed, stream, (uint64_t)i, i + 1);
        const uint8_t kept = to[i];
        to[i] = to[k];
        to[k] = kept;
    }
    return to[x];
}

static void sort(const struct synthetic *s, uint8_t *y, const uint8_t *x)
{
    size_t of[256] = {0};

    for (size_t i = 0; i < count(s); i++)
        of[x[i]]++;
    for (int a = 0; a < alphabet(s); a++)
        for (; of[a] > 0; of[a]--)
            *y++ = (uint8_t)a;
}

static bool is_reversed(const struct synthetic *s) { return s->kind == &source_reverse; }
static bool is_sorted(const struct synthetic *s) { return s->kind == &source_sort; }

static void fill(const struct synthetic *s, uint64_t seed, uint8_t *x, size_t n)
{
    const uint64_t symbol = rng_stream("source.pairs");
    const size_t len = count(s);
    uint8_t map[256], y[MOST_SORTED];

    for (int a = 0; s->kind == &source_translate && a < alphabet(s); a++)
        map[a] = translated(s, (uint8_t)a);
    for (size_t t = 0; t < n; t++) {
        const size_t q = t % period(s), begin = t - q, j = q - len - 1;
        if (q < len)
            x[t] = (uint8_t)source_draw(seed, symbol, t, alphabet(s));
        else if (q == len)
            x[t] = (uint8_t)alphabet(s);
        else if (is_sorted(s)) {
            if (j == 0)
                sort(s, y, x + begin);
            x[t] = y[j];
        } else
            x[t] = is_reversed(s) ? x[begin + len - 1 - j] : map[x[begin + j]];
    }
}

/* ---- floors --------------------------------------------------------------------------------- */

/* Of a target whose j-th symbol is a function of that symbol of the source. */
static double nll_of_one(const struct synthetic *s, size_t at, size_t reach)
{
    const size_t q = at % period(s), len = count(s), begin = at - q, j = q - len - 1;

    if (q < len)
        return log(s->value[ALPHABET]);
    if (q == len || begin + (is_reversed(s) ? len - 1 - j : j) + reach >= at)
        return 0;
    return log(s->value[ALPHABET]);
}

/* What is known of a sorted text: how many symbols of its source are at most a, of those in reach;
 * that its symbols `from` to before `to` are y. */
struct known {
    int A, hidden, seen[256];
    const uint8_t *y;
    int from, to;
};

/* Can so many symbols be below a, and so many at most a? */
static bool agrees(const struct known *k, int a, int below, int upto)
{
    for (int i = k->from; i < k->to; i++)
        if (k->y[i] == a && (below > i || upto <= i))
            return false;
    return true;
}

/* The chance of what is known, over what the hidden symbols are. */
static double chance(const struct known *k)
{
    double p[MOST_SORTED + 1] = {1}, all = 0; /* of so many hidden ones below a */

    for (int a = 0; a < k->A; a++) {
        const double is = 1.0 / (k->A - a);
        double next[MOST_SORTED + 1] = {0};
        for (int h = 0; h <= k->hidden; h++) {
            const int left = k->hidden - h, below = h + (a ? k->seen[a - 1] : 0);
            double here = is < 1 ? p[h] * pow(1 - is, left) : left ? 0 : p[h];
            for (int m = 0; p[h] > 0 && m <= left; m++) {
                if (is == 1) /* the last symbol: all that are left */
                    here = m == left ? p[h] : 0;
                if (agrees(k, a, below, h + m + k->seen[a]))
                    next[h + m] += here;
                here *= is < 1 ? (double)(left - m) / (m + 1) * is / (1 - is) : 1;
            }
        }
        memcpy(p, next, sizeof(p));
    }
    for (int h = 0; h <= k->hidden; h++)
        all += p[h];
    return all;
}

static double nll_sorted(const struct synthetic *s, const uint8_t *x, size_t at, size_t reach)
{
    const size_t q = at % period(s), len = count(s), begin = at - q, target = begin + len + 1;
    const size_t from = source_seen(at, reach, begin);

    if (q < len)
        return log(s->value[ALPHABET]);
    if (q == len || from == begin)
        return 0;
    struct known k = {.A = alphabet(s), .hidden = min_int((int)(from - begin), (int)len)};

    for (size_t t = from; t < begin + len; t++)
        k.seen[x[t]]++;
    for (int a = 1; a < k.A; a++)
        k.seen[a] += k.seen[a - 1];
    k.y = x + target;
    k.to = (int)(at - target);
    k.from = from > target ? (int)(from - target) : 0;
    const double before = chance(&k);
    k.to++;
    return log(before) - log(chance(&k));
}

static double nll(const struct synthetic *s, const uint8_t *x, size_t at, struct source_view view)
{
    return is_sorted(s) ? nll_sorted(s, x, at, view.reach) : nll_of_one(s, at, view.reach);
}

/* ---- the sources ---------------------------------------------------------------------------- */

#define PAIRS(its_name, its_about, most)                                                           \
    {                                                                                              \
        .name = (its_name), .about = (its_about),                                                  \
        .keys = {{"n", 16, 1, (most), false, NULL}, {"alphabet", 16, 2, 255, false, NULL}},        \
        .vocab = vocab, .fill = fill, .nll = nll, .answers = answers, .pair = pair,                \
    }

const struct source_kind source_reverse =
    PAIRS("reverse", "n symbols, then the same from the end", 1 << 15);
const struct source_kind source_translate =
    PAIRS("translate", "n symbols, then each of them as another, always the same", 1 << 15);
const struct source_kind source_sort =
    PAIRS("sort", "n symbols, then the same in order", MOST_SORTED);

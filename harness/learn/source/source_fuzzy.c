/* SPDX-License-Identifier: MIT
 *
 * fuzzy:pairs=D,alphabet=A,values=B,most=m,len=N (fuzzy recall: Poli et al. 2024, "Mechanistic Design
 * and Scaling of Hybrid Architectures"). Episodes of N symbols begin with D pairs: a key of 1 to m
 * symbols of A, "=", a value of 1 to m symbols of B, ";". No key occurs twice. Pairs whose keys are
 * drawn from these D follow while the longest has room, then blanks. Lengths and symbols are
 * uniform.
 *
 * Answers are what follows the "=" of a pair after the first D, up to its ";". Its own pair counts
 * as known. If a pair of the same key ends within reach, they cost nothing. Otherwise the j-th
 * symbol is ";" with probability 1/(m-j+2), for j > 1, or one of B. Other symbols have no floor. */
#include "synthetic.h"

enum { PAIRS, ALPHABET, VALUES, MOST, LEN };
enum { MOST_SYMBOLS = 8, MOST_PAIRS = 255, MOST_LEN = 4096 };

static int first_value(const struct synthetic *s) { return source_int(s, ALPHABET); }
static int equals(const struct synthetic *s) { return first_value(s) + source_int(s, VALUES); }
static int ends(const struct synthetic *s) { return equals(s) + 1; }
static int blank(const struct synthetic *s) { return equals(s) + 2; }
static int vocab(const struct synthetic *s) { return equals(s) + 3; }
static size_t longest(const struct synthetic *s) { return 2 * (size_t)s->value[MOST] + 2; }

static enum status check(const struct synthetic *s, struct err *e)
{
    const double room = (s->value[PAIRS] + 1) * (double)longest(s), A = s->value[ALPHABET];
    double keys = 0;

    for (int j = 1; j <= source_int(s, MOST); j++)
        keys += pow(A, j);
    if (s->value[LEN] < room)
        return fail(e, E_USAGE, "len %g has no room for pairs %g and a question  -> use %g or more",
                    s->value[LEN], s->value[PAIRS], room);
    return s->value[PAIRS] <= keys / 2
               ? OK
               : fail(e, E_USAGE, "pairs %g of %g keys  -> use fewer pairs or a larger alphabet",
                      s->value[PAIRS], keys);
}

/* ---- the text ----------------------------------------------------------------------------- */

struct string {
    size_t n;
    uint8_t x[MOST_SYMBOLS];
};

struct draws {
    uint64_t seed, stream, at;
};
static int draw(struct draws *d, int most)
{
    return source_draw(d->seed, d->stream, d->at++, most);
}

static struct string draw_string(const struct synthetic *s, struct draws *d, int first, int symbols)
{
    struct string z = {.n = 1 + (size_t)draw(d, source_int(s, MOST))};

    for (size_t j = 0; j < z.n; j++)
        z.x[j] = (uint8_t)(first + draw(d, symbols));
    return z;
}

static bool among(const struct string *keys, int n, const struct string *key)
{
    for (int i = 0; i < n; i++)
        if (keys[i].n == key->n && memcmp(keys[i].x, key->x, key->n) == 0)
            return true;
    return false;
}

static size_t put(const struct synthetic *s, uint8_t *x, size_t t, const struct string *key,
                  const struct string *value)
{
    memcpy(x + t, key->x, key->n);
    t += key->n;
    x[t++] = (uint8_t)equals(s);
    memcpy(x + t, value->x, value->n);
    t += value->n;
    x[t++] = (uint8_t)ends(s);
    return t;
}

static void episode(const struct synthetic *s, uint64_t seed, uint64_t number, uint8_t x[MOST_LEN])
{
    const int D = source_int(s, PAIRS);
    const size_t len = (size_t)s->value[LEN];
    struct draws d = {seed, rng_stream("source.fuzzy"), number << 32};
    struct string keys[MOST_PAIRS], values[MOST_PAIRS];
    size_t t = 0;

    for (int i = 0; i < D; i++) {
        do
            keys[i] = draw_string(s, &d, 0, first_value(s));
        while (among(keys, i, &keys[i]));
        values[i] = draw_string(s, &d, first_value(s), source_int(s, VALUES));
        t = put(s, x, t, &keys[i], &values[i]);
    }
    while (t + longest(s) <= len) {
        const int i = draw(&d, D);
        t = put(s, x, t, &keys[i], &values[i]);
    }
    memset(x + t, blank(s), len - t);
}

static void fill(const struct synthetic *s, uint64_t seed, uint8_t *x, size_t n)
{
    const size_t len = (size_t)s->value[LEN];
    uint8_t one[MOST_LEN];

    for (size_t t = 0; t < n; t += len) {
        episode(s, seed, t / len, one);
        memcpy(x + t, one, n - t < len ? n - t : len);
    }
}

/* ---- the floor ---------------------------------------------------------------------------- */

/* The pair in which `at` stands: where it begins, its "=", and how many were before it. */
struct pair {
    size_t begin, equals, number;
};
static struct pair pair_of(const struct synthetic *s, const uint8_t *x, size_t at)
{
    struct pair p = {.begin = at - at % (size_t)s->value[LEN]};

    p.equals = p.begin;
    for (size_t t = p.begin; t < at; t++)
        if (x[t] == equals(s))
            p.equals = t;
        else if (x[t] == ends(s)) {
            p.begin = p.equals = t + 1;
            p.number++;
        }
    return p;
}

static bool answers(const struct synthetic *s, const uint8_t *x, size_t at)
{
    const struct pair p = pair_of(s, x, at);

    return p.number >= (size_t)s->value[PAIRS] && p.equals > p.begin;
}

/* Does a pair of the same key end in [from, p.begin)? */
static bool told(const struct synthetic *s, const uint8_t *x, const struct pair *p, size_t begin,
                 size_t from)
{
    const size_t key = p->equals + 1 - p->begin; /* with its "=" */

    for (size_t t = begin; t < p->begin; t++) {
        const bool same = t + key <= p->begin && memcmp(x + t, x + p->begin, key) == 0;
        while (x[t] != ends(s))
            t++;
        if (same && t >= from)
            return true;
    }
    return false;
}

static double nll(const struct synthetic *s, const uint8_t *x, size_t at, struct source_view view)
{
    const size_t begin = at - at % (size_t)s->value[LEN];
    const struct pair p = pair_of(s, x, at);
    const double left = s->value[MOST] - (double)(at - p.equals - 1); /* symbols that may come */

    if (p.number < (size_t)s->value[PAIRS] || p.equals == p.begin)
        return NAN;
    if (told(s, x, &p, begin, source_seen(at, view.reach, begin)))
        return 0;
    if (x[at] == ends(s))
        return log(left + 1);
    return log(s->value[VALUES]) + (at == p.equals + 1 ? 0 : log(left + 1) - log(left));
}

const struct source_kind source_fuzzy = {
    .name = "fuzzy",
    .about = "pairs of a key and a value of some symbols each, then keys asked again",
    .keys = {{"pairs", 8, 1, MOST_PAIRS, false, NULL},
             {"alphabet", 16, 1, 251, false, NULL},
             {"values", 16, 1, 251, false, NULL},
             {"most", 3, 1, MOST_SYMBOLS, false, NULL},
             {"len", 132, 8, MOST_LEN, false, NULL}},
    .check = check,
    SOURCE_HOOKS,
    .answers = answers,
};

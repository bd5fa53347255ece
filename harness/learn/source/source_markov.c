/* SPDX-License-Identifier: MIT
 *
 * markov:order=m,alphabet=A,alpha=c,len=N. Each episode of N symbols draws a Markov chain of order
 * m: a distribution of the next symbol for each m symbols before it, from a Dirichlet distribution
 * of parameter c. Its first m symbols are uniform. The symbols are drawn with that distribution
 * integrated out, which is Polya's urn: j follows i with probability
 *
 *   (n_ij + c) / (n_i + A c)
 *
 * where n_ij counts how often j has followed i in the episode and n_i = sum_j n_ij. That is the
 * floor too, with the counts of what is within reach. Answers are symbols after m symbols that have
 * occurred. */
#include "synthetic.h"

enum { ORDER, ALPHABET, ALPHA, LEN };

static int vocab(const struct synthetic *s) { return source_int(s, ALPHABET); }

static enum status check(const struct synthetic *s, struct err *e)
{
    return s->value[LEN] > s->value[ORDER]
               ? OK
               : fail(e, E_USAGE, "len %g is no longer than order %g  -> use a longer one",
                      s->value[LEN], s->value[ORDER]);
}

/* How often the m symbols before `at` occur with a successor in [from, at), and with x[at]; of the
 * latter the k-th successor, if it is asked for. */
struct counts {
    int all, same;
};
static struct counts count(const struct synthetic *s, const uint8_t *x, size_t at, size_t from,
                           int k, uint8_t *kth)
{
    const size_t m = (size_t)s->value[ORDER];
    struct counts c = {0};

    for (size_t t = from + m; t < at; t++) {
        if (memcmp(x + t - m, x + at - m, m) != 0)
            continue;
        if (kth && c.all == k)
            *kth = x[t];
        c.same += !kth && x[t] == x[at];
        c.all++;
    }
    return c;
}

/* The urn: with n symbols that have followed, one of them again, or a new one. */
static uint8_t drawn(const struct synthetic *s, const uint8_t *x, size_t at, size_t begin, double u,
                     int fresh)
{
    const int n = count(s, x, at, begin, -1, NULL).all;
    const double a = s->value[ALPHABET] * s->value[ALPHA];
    uint8_t again = (uint8_t)fresh;

    if (u * (n + a) < n)
        count(s, x, at, begin, (int)(u * (n + a)), &again);
    return again;
}

static void fill(const struct synthetic *s, uint64_t seed, uint8_t *x, size_t n)
{
    const uint64_t urn = rng_stream("source.markov.urn"), fresh = rng_stream("source.markov.new");
    const size_t len = (size_t)s->value[LEN], m = (size_t)s->value[ORDER];

    for (size_t t = 0; t < n; t++) {
        x[t] = (uint8_t)source_draw(seed, fresh, t, vocab(s));
        if (t % len >= m)
            x[t] = drawn(s, x, t, t - t % len, rng_uniform(seed, urn, t), x[t]);
    }
}

static double nll(const struct synthetic *s, const uint8_t *x, size_t at, struct source_view view)
{
    const size_t len = (size_t)s->value[LEN], begin = at - at % len;
    const double A = s->value[ALPHABET], c = s->value[ALPHA];

    if (at % len < (size_t)s->value[ORDER])
        return log(A);
    const struct counts n = count(s, x, at, source_seen(at, view.reach, begin), 0, NULL);
    return -log((n.same + c) / (n.all + A * c));
}

static bool answers(const struct synthetic *s, const uint8_t *x, size_t at)
{
    const size_t q = at % (size_t)s->value[LEN];

    return q >= (size_t)s->value[ORDER] && count(s, x, at, at - q, 0, NULL).all > 0;
}

const struct source_kind source_markov = {
    .name = "markov",
    .about = "episodes, each from its own Markov chain, which must be learnt within the episode",
    .keys = {{"order", 1, 1, 8, false, NULL},
             {"alphabet", 8, 2, 256, false, NULL},
             {"alpha", 0.5, 0.001, 1000, true, NULL},
             {"len", 256, 2, 1 << 16, false, NULL}},
    .check = check,
    SOURCE_HOOKS,
    .answers = answers,
};

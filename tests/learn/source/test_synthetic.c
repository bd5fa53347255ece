/* SPDX-License-Identifier: MIT
 *
 * The copy source: its text, its statistics, and the floor of the loss. */
#include "harness/learn/source/corpus.h"
#include "tests/support/failure.h"

static struct synthetic parsed(const char *text)
{
    struct synthetic s;

    MUST(synthetic_parse(&s, text, &failure));
    return s;
}

Test(synthetic, text_is_read_or_refused)
{
    static const char *const bad[][16] = {
        /* a source and what it refuses */
        {"copy", "lag=0", "p=1", "p=-0.1", "alphabet=1", "alphabet=257", "lag=2.5", "lag=x",
         "speed=3", "lag=4;p=0.5", "lag", "seed=-1", ",", "groups=0", "groups=5", "lag=9,groups=4"},
        {"recall", "keys=0", "p=1.1", "keys=200,values=100"},
        {"mqar", "len=63", "pairs=17", "vocab=64", "vocab=257"},
        {"selcopy", "n=128", "alphabet=255"},
        {"cue", "gap=-1", "alphabet=128"},
        {"flipflop", "ignore=1"},
        {"group", "name=s4", "ask=0", "name=0"},
        {"markov", "order=0", "alpha=0", "order=2,len=2"},
        {"dyck", "depth=256", "kinds=129"},
        {"lookup", "gram=32", "alphabet=256"},
        {"fuzzy", "len=53", "pairs=4,alphabet=2,most=1", "most=9"},
        {"noisy", "noise=1", "keys=200,values=41"},
        {"compression", "n=250", "ask=0"},
        {"memorisation", "alphabet=64,gram=3", "values=1"},
    };
    struct synthetic s;

    cr_expect(synthetic_named("copy:") && !synthetic_named("copy.txt") && !synthetic_named("copy"));
    cr_assert_eq(synthetic_parse(&s, "copy:alphabet=7,p=0.25,lag=3,seed=4", &failure), OK);
    cr_expect(s.value[0] == 3 && s.value[1] == 0.25 && s.value[2] == 7 && s.seed == 4);
    cr_assert_eq(synthetic_parse(&s, SOURCE_DEFAULT, &failure), OK);
    NUMBERS({s.value[0], 192}, {s.value[1], 0.9}, {s.value[2], 16}, {s.value[3], 4}, {s.seed, 0});
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        for (int k = 1; k < 16 && bad[i][k]; k++) {
            const char *const text = kept_text("%s:%s", bad[i][0], bad[i][k]);
            REFUSED(synthetic_parse(&s, text, &failure), E_USAGE, text, "  -> ");
        }
}

Test(synthetic, symbols_repeat_as_often_as_they_should)
{
    enum { N = 200000 };
    static uint8_t x[N], again[N], other[N];
    const struct synthetic s = parsed("copy:lag=5,alphabet=4,p=0.6"),
                           next = parsed("copy:lag=5,alphabet=4,p=0.6,seed=1");
    int repeats = 0, seen[4] = {0}, same = 0;

    synthetic_fill(&s, SPLIT_TRAIN, x, N);
    synthetic_fill(&s, SPLIT_TRAIN, again, N);
    synthetic_fill(&s, SPLIT_VALID, other, N);
    cr_assert_eq(memcmp(x, again, N), 0);
    synthetic_fill(&next, SPLIT_TRAIN, again, N);
    cr_expect(memcmp(again, other, N) != 0, "a seed trains on what another validates with");
    for (int t = 5; t < N; t++) {
        repeats += x[t] == x[t - 5];
        seen[x[t]]++;
        same += x[t] == other[t];
    }
    /* q = 0.6 + 0.4/4 = 0.7; four standard deviations of a binomial share: 4 sqrt(q(1-q)/N). */
    cr_expect_float_eq(repeats / (N - 5.0), 0.7, 4 * sqrt(0.7 * 0.3 / N));
    /* Symbols are uniform but come in chains of about 1/(1-p) repeats: 2.5 times the variance. */
    for (int a = 0; a < 4; a++)
        cr_expect_float_eq(seen[a] / (N - 5.0), 0.25, 4 * sqrt(4 * 0.25 * 0.75 / N));
    cr_expect_float_eq(same / (N - 5.0), 0.25, 4 * sqrt(4 * 0.25 * 0.75 / N));
}

Test(synthetic, nll_is_the_entropy_within_reach_and_the_group_beyond)
{
    enum { N = 100000 };
    static uint8_t x[N];
    struct synthetic s;
    double near = 0, far = 0;

    cr_assert_eq(synthetic_parse(&s, SOURCE_DEFAULT, &failure), OK);
    synthetic_fill(&s, SPLIT_TEST, x, N);
    for (size_t t = 192; t < N; t++) {
        near += synthetic_nll(&s, x, t, 192, NULL);
        far += synthetic_nll(&s, x, t, 191, NULL);
    }
    const double q = 0.9 + 0.1 / 4, r = 0.1 / 4;
    const double entropy = -(q * log(q) + 3 * r * log(r));
    /* One term is -ln q or -ln r: their spread times four standard deviations of the share. */
    cr_expect_float_eq(near / (N - 192), entropy, log(q / r) * 4 * sqrt(q * (1 - q) / N));
    cr_expect_float_eq(exp(entropy), 1.417, 5e-4); /* the published floor of the default source */
    cr_expect_float_eq(far / (N - 192), log(4), 1e-10); /* N equal terms: N eps ln 4 */
    cr_expect_float_eq(synthetic_nll(&s, x, 100, 100, NULL), log(4), 1e-12,
                       "before the first repeat");
}

/* Groups come in turn: the symbol before tells the next one's, and the lag which of it. Probabilities
 * of a group add up to 1, and what is drawn has their entropy. */
Test(synthetic, groups_are_local_structure)
{
    enum { N = 100000 };
    static uint8_t x[N];
    const struct synthetic s = parsed("copy:lag=6,p=0.7,alphabet=12,groups=3");
    const double q = 0.7 + 0.3 / 4, r = 0.3 / 4, entropy = -(q * log(q) + 3 * r * log(r));
    double near = 0, far = 0;

    synthetic_fill(&s, SPLIT_TEST, x, N);
    for (size_t t = 0; t < N; t++)
        cr_assert(x[t] / 4 == t % 3, "%d at %zu", x[t], t);
    for (size_t t = 6; t < N; t++) {
        near += synthetic_nll(&s, x, t, 6, NULL);
        far += synthetic_nll(&s, x, t, 5, NULL);
    }
    cr_expect_float_eq(near / (N - 6), entropy, log(q / r) * 4 * sqrt(q * (1 - q) / N));
    cr_expect_float_eq(far / (N - 6), log(4), 1e-10);
}

/* A repeat is chosen with p, or drawn by luck; the symbols' probabilities add up to 1. */
Test(synthetic, nll_by_hand)
{
    const struct synthetic s = parsed("copy:lag=3,alphabet=4,p=0.8");
    uint8_t x[] = {2, 0, 1, 0};
    double sum = 0;

    for (x[3] = 0; x[3] < 4; x[3]++) {
        const double nll = synthetic_nll(&s, x, 3, 3, NULL);
        cr_expect_float_eq(nll, -log(x[3] == 2 ? 0.85 : 0.05), 1e-12, "symbol %d", x[3]);
        sum += exp(-nll);
    }
    cr_expect_float_eq(sum, 1, 1e-12);
}

Test(synthetic, reach_is_an_upper_bound)
{
    cr_expect_eq(synthetic_reach(true, 3, 10, 4, 2), 13, "the window alone");
    cr_expect_eq(synthetic_reach(false, 3, 0, 4, 2), 3, "no memory: the segment so far");
    cr_expect_eq(synthetic_reach(false, 1, 10, 4, 2), 13, "one layer: memory and segment");
    cr_expect_eq(synthetic_reach(false, 3, 10, 4, 0), 3 * 10 + 2 * 3 + 1);
}

Test(synthetic, a_corpus_can_be_generated)
{
    struct corpus c;

    cr_assert_eq(corpus_open(&c, "copy:lag=3,p=0.5,alphabet=9", SPLIT_TEST, 1000, &failure), OK);
    cr_expect(c.generated && c.vocab == 9 && c.n == 1000);
    cr_expect_str_eq(c.unit, "symbol");
    for (size_t i = 0; i < c.n; i++)
        cr_assert_lt(c.bytes[i], 9);
    corpus_close(&c);
    cr_assert_eq(corpus_open(&c, "copy:", SPLIT_TEST, 0, &failure), OK);
    cr_expect_eq(c.n, SOURCE_TOKENS);
    corpus_close(&c);
    cr_expect_eq(corpus_open(&c, "copy:lag=", SPLIT_TEST, 0, &failure), E_USAGE);
}

/* SPDX-License-Identifier: MIT
 *
 * The generated sources against predictors that are written from their definitions: each gives a
 * distribution of the next symbol from tables of what it has seen. Its loss is the stated floor,
 * with all of the past and with little of it, and the symbols are drawn as it says. */
#include "source_predictors.h"

#include "harness/learn/source/synthetic.h"
#include "tests/support/failure.h"

enum { N = SOURCE_TEXT, SYMBOLS = SOURCE_SYMBOLS };
static uint8_t *const x = source_text;

static struct synthetic parsed(const char *text)
{
    struct synthetic s;

    MUST(synthetic_parse(&s, text, &failure));
    return s;
}

/* ---- floors ------------------------------------------------------------------------------- */

struct sums {
    double loss, floor, answer_loss, answer_floor;
    double off, square; /* of the loss from the entropy that was predicted, and its squares */
    int answers;
};

static struct sums run(const struct synthetic *s, source_predict *predict, size_t reach)
{
    struct sums r = {0};
    struct source_memo memo = {0};

    for (size_t at = 1; at < N; at++) {
        double p[SYMBOLS] = {0}, sum = 0, entropy = 0;
        const size_t seen = reach < at ? reach : at;
        const double nll = synthetic_nll(s, x, at, seen, &memo);
        if (!predict(p, at, seen)) {
            cr_assert(isnan(nll) && !synthetic_answers(s, x, at), "%zu", at);
            continue;
        }
        for (int a = 0; a < SYMBOLS; a++) {
            sum += p[a];
            entropy -= p[a] > 0 ? p[a] * log(p[a]) : 0;
        }
        cr_assert_float_eq(sum, 1, 1e-9, "the predictor's sum is %g at %zu", sum, at);
        const double loss = -log(p[x[at]]);
        /* Their averages may be equal where those of single symbols are not. */
        cr_expect(reach < N || fabs(loss - nll) < 1e-9, "%zu: %g nats, the predictor has %g", at,
                  nll, loss);
        r.loss += loss;
        r.floor += nll;
        r.off += loss - entropy;
        r.square += (loss - entropy) * (loss - entropy);
        if (synthetic_answers(s, x, at)) {
            r.answer_loss += loss;
            r.answer_floor += nll;
            r.answers++;
        }
    }
    return r;
}

static void expect_reached(double loss, double floor, const char *what, const char *text)
{
    cr_expect_float_eq(loss, floor, 0.005 * floor + 1e-9, "%s: %s %g, floor %g", text, what, loss,
                       floor);
}

Test(sources, predictors_reach_the_floors)
{
    for (const struct source_case *c = source_cases; c->text; c++) {
        const struct synthetic s = parsed(c->text);
        synthetic_fill(&s, SPLIT_TEST, x, N);
        const struct sums all = run(&s, c->predict, N);
        const struct sums some = run(&s, c->predict, c->little);
        cr_assert_gt(all.answers, 1000, "%s", c->text);
        expect_reached(all.loss, all.floor, "all of the past", c->text);
        expect_reached(all.answer_loss, all.answer_floor, "answers", c->text);
        expect_reached(some.loss, some.floor, "some of it", c->text);
        expect_reached(some.answer_loss, some.answer_floor, "answers", c->text);
        /* Draws from what was predicted: off is a sum of differences of mean 0. */
        cr_expect_lt(fabs(all.off), 4 * sqrt(all.square) + 1e-9, "%s: %g nats of %g", c->text,
                     all.off, sqrt(all.square));
        cr_expect_gt(some.answer_floor, all.answer_floor + 0.02 * some.answers,
                     "%s: the past does not matter: %g, %g", c->text, some.answer_floor,
                     all.answer_floor);
    }
}

/* Where everything is drawn, the numbers of the table. */
Test(sources, floors_are_the_stated_ones)
{
    const struct synthetic r = parsed("recall:keys=6,values=5,p=0.7");
    const double q = 0.7 + 0.3 / 5, other = 0.3 / 5;
    double values = 0, square = 0;
    int n = 0;

    synthetic_fill(&r, SPLIT_VALID, x, N);
    cr_expect_float_eq(synthetic_nll(&r, x, 100, 100, NULL), log(6), 1e-12);
    cr_expect_float_eq(synthetic_nll(&r, x, 1, 1, NULL), log(5), 1e-12);
    for (size_t at = 1; at < N; at += 2)
        if (synthetic_answers(&r, x, at)) {
            const double nll = synthetic_nll(&r, x, at, at, NULL);
            values += nll;
            square += nll * nll;
            n++;
        }
    /* Four standard deviations of a mean. */
    cr_expect_float_eq(values / n, -q * log(q) - 4 * other * log(other), 4 * sqrt(square) / n);
    const struct synthetic d = parsed("dyck:kinds=3,depth=1");
    synthetic_fill(&d, SPLIT_VALID, x, 100);
    for (size_t at = 1; at < 100; at++) /* opens and closes in turn */
        cr_expect_float_eq(synthetic_nll(&d, x, at, at, NULL), at % 2 ? 0 : log(3), 1e-12);
}

/* ---- groups ------------------------------------------------------------------------------- */

/* The table of a group, as texts that ask after each element tell it: [newest][before] -> product;
 * every entry is seen, and only with one product. */
static void learn_group(int *table, const char *text, int n)
{
    enum { LONG = 900000 };
    static uint8_t y[LONG];
    const struct synthetic s = parsed(text);
    int missing = 0;

    cr_assert_eq(synthetic_vocab(&s), 2 * n);
    synthetic_fill(&s, SPLIT_TRAIN, y, LONG);
    memset(table, -1, sizeof(int) * (size_t)(n * n));
    for (size_t t = 1; t < LONG; t += 2) {
        const int before = t == 1 ? 0 : y[t - 2] - n, newest = y[t - 1];
        int *const at = &table[newest * n + before];
        cr_assert(*at < 0 || *at == y[t] - n, "%s: %d after %d", text, newest, before);
        *at = y[t] - n;
    }
    for (int i = 0; i < n * n; i++)
        missing += table[i] < 0;
    cr_assert_eq(missing, 0, "%s: %d of %d products were never asked", text, missing, n * n);
}

/* Is it a group of that many elements, 0 the neutral one? */
static void expect_group(const int *t, int n, bool commutes, const char *name)
{
    int differ = 0;

    for (int a = 0; a < n; a++) {
        bool seen[120] = {false};
        cr_expect(t[a * n] == a && t[a] == a, "%s: 0 is neutral", name);
        for (int b = 0; b < n; b++) {
            cr_assert(!seen[t[a * n + b]], "%s: %d takes two to one", name, a);
            seen[t[a * n + b]] = true;
            differ += t[a * n + b] != t[b * n + a];
            for (int c = 0; c < n; c += 7)
                cr_assert_eq(t[a * n + t[b * n + c]], t[t[a * n + b] * n + c], "%s", name);
        }
    }
    cr_expect_eq(differ == 0, commutes, "%s", name);
}

Test(sources, groups_are_groups)
{
    static const struct {
        const char *name;
        int n;
    } groups[] = {{"z2", 2}, {"z5", 5}, {"s5", 120}};
    static int table[120 * 120];

    for (size_t g = 0; g < ARRAY_LEN(groups); g++) {
        const int n = groups[g].n;
        learn_group(table, kept_text("group:name=%s,ask=1", groups[g].name), n);
        expect_group(table, n, n < 120, groups[g].name);
        if (n == 120) { /* 01243 after 01324 is 01423, the other way round 01342, in their order */
            cr_expect(table[120 * 1 + 2] == 4 && table[120 * 2 + 1] == 3, "%d %d", table[122],
                      table[241]);
        }
        const char *const text = kept_text("group:name=%s,ask=6", groups[g].name);
        const struct synthetic s = parsed(text);
        synthetic_fill(&s, SPLIT_TEST, x, N);
        int state = 0, seen[120] = {0}, asked = 0;
        for (size_t at = 0; at < N; at++) {
            if (at % 7 < 6) {
                state = table[x[at] * n + state];
                cr_assert(!synthetic_answers(&s, x, at));
                continue;
            }
            cr_assert(x[at] == n + state && synthetic_answers(&s, x, at), "%s %zu", text, at);
            seen[state]++;
            asked++;
            /* With the product before, or all from the beginning, it is certain; else it is any. */
            cr_assert_eq(synthetic_nll(&s, x, at, at < 7 ? at : 7, NULL), 0);
            if (at > 7)
                cr_assert_float_eq(synthetic_nll(&s, x, at, 6, NULL), log(n), 1e-12);
        }
        for (int a = 0; a < n; a++) /* uniform: four standard deviations of a share */
            cr_expect_float_eq(seen[a] / (double)asked, 1.0 / n, 4 * sqrt(1.0 / n / asked));
    }
}

/* ---- all of them -------------------------------------------------------------------------- */

Test(sources, texts_are_the_same_at_any_length)
{
    static uint8_t shorter[N], other[N];
    char text[KEYED_TEXT];
    const char *about;
    int n = 0;

    for (; synthetic_source(n, text, &about); n++) {
        const struct synthetic s = parsed(text);
        struct synthetic seeded = s;
        int same = 0;
        cr_expect(*about && synthetic_named(text) && synthetic_vocab(&s) <= SYMBOLS);
        synthetic_fill(&s, SPLIT_TRAIN, x, N);
        synthetic_fill(&s, SPLIT_TRAIN, shorter, 1001);
        cr_expect_eq(memcmp(x, shorter, 1001), 0, "%s", text);
        synthetic_fill(&s, SPLIT_VALID, other, N);
        cr_expect_neq(memcmp(x, other, N), 0, "%s", text);
        seeded.seed = 1;
        synthetic_fill(&seeded, SPLIT_TRAIN, other, N);
        for (int t = 0; t < N; t++) {
            cr_assert_lt(x[t], synthetic_vocab(&s), "%s", text);
            same += x[t] == other[t];
        }
        cr_expect_lt(same, N, "%s: a seed changes nothing", text);
        cr_expect_eq(synthetic_asks(text), n > 0, "%s", text);
    }
    cr_expect_eq(n, 17);
}

/* Floors are those of texts read in any order. */
Test(sources, floors_do_not_depend_on_the_order)
{
    char text[KEYED_TEXT];
    const char *about;

    for (int i = 0; synthetic_source(i, text, &about); i++) {
        const struct synthetic s = parsed(text);
        struct source_memo memo = {0};
        synthetic_fill(&s, SPLIT_TEST, x, 2000);
        for (size_t k = 1; k < 2000; k++) {
            const size_t at = k * 701 % 2000, reach = k % (at + 1);
            const double got = at ? synthetic_nll(&s, x, at, reach, &memo) : 0;
            const double want = at ? synthetic_nll(&s, x, at, reach, NULL) : 0;
            cr_assert((isnan(got) && isnan(want)) || got == want, "%s at %zu", text, at);
        }
    }
}

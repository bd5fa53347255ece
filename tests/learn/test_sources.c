/* SPDX-License-Identifier: MIT
 *
 * The generated sources against predictors that are written from their definitions: each gives a
 * distribution of the next symbol from tables of what it has seen. Its loss is the stated floor,
 * with all of the past and with little of it, and the symbols are drawn as it says. */
#include "harness/learn/synthetic.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 40000, SYMBOLS = 256 };
static uint8_t x[N];

static struct synthetic parsed(const char *text)
{
    struct synthetic s;
    struct err e = {""};

    cr_assert_eq(synthetic_parse(&s, text, &e), OK, "%s", e.msg);
    return s;
}

/* The distribution of x[at], given x[at-reach..at-1]; tables live from call to call, in order of
 * `at`. False where there is none. */
typedef bool predict_fn(double p[SYMBOLS], size_t at, size_t reach);

static void uniform(double p[SYMBOLS], int first, int n)
{
    for (int i = 0; i < n; i++)
        p[first + i] += 1.0 / n;
}

/* ---- predictors --------------------------------------------------------------------------- */

/* recall:keys=6,values=5,p=0.7 */
static bool recall(double p[SYMBOLS], size_t at, size_t reach)
{
    static struct {
        int value;
        size_t at;
    } last[6];

    if (at == 1)
        memset(last, 0, sizeof(last));
    if (at % 2 == 0) {
        const int key = x[at - 2];
        last[key].value = x[at - 1];
        last[key].at = at - 1;
        uniform(p, 0, 6);
        return true;
    }
    const int key = x[at - 1];
    const bool known = last[key].at && at - (last[key].at - 1) <= reach;
    for (int v = 0; v < 5; v++)
        p[6 + v] = known ? 0.3 / 5 + (v + 6 == last[key].value ? 0.7 : 0) : 0.2;
    return true;
}

/* mqar:pairs=5,len=40,vocab=64: answers only; whether it is one, the mask of the loss says. */
static bool mqar(double p[SYMBOLS], size_t at, size_t reach)
{
    const size_t q = at % 40, begin = at - q, from = at - reach > begin ? at - reach : begin;
    int value[64] = {0}, n = 32, cut = 0, hidden = 0;
    bool gone[64] = {false};

    for (size_t t = begin; t + 1 < begin + 10; t += 2) { /* of key x[t] */
        if (t >= from)
            value[x[t]] = x[t + 1];
        if (t + 1 >= from)
            gone[x[t + 1]] = true;
        if (t + 1 == from)
            cut = x[t + 1];
        hidden += t < from;
    }
    if (q < 10 || q % 2 == 0)
        return false;
    bool is_key = false;
    for (size_t t = begin; t < begin + 10; t += 2)
        is_key = is_key || x[t] == x[at - 1];
    if (!is_key)
        return false;
    if (value[x[at - 1]]) {
        p[value[x[at - 1]]] = 1;
        return true;
    }
    for (size_t t = begin + 10; t + 1 < at; t += 2) /* answered keys have other values */
        for (size_t k = begin; k < begin + 10; k += 2)
            if (t + 1 >= from && x[t] == x[k]) {
                gone[x[t + 1]] = true;
                cut = cut == x[t + 1] ? 0 : cut;
                hidden -= k < from;
            }
    for (int v = 32; v < 64; v++)
        n -= gone[v];
    for (int v = 32; v < 64; v++)
        p[v] = gone[v] ? 0 : (cut ? 1 - 1.0 / hidden : 1) / n;
    if (cut) /* the value of a hidden key, perhaps of this one */
        p[cut] = 1.0 / hidden;
    return true;
}

/* selcopy:n=4,len=20,alphabet=3: 15 places, a query, 4 answers */
static bool selcopy(double p[SYMBOLS], size_t at, size_t reach)
{
    const size_t q = at % 20, begin = at - q;
    int data[15], d = 0, v = 0;

    for (size_t t = begin; t < at && t < begin + 15; t++)
        if (t + reach >= at) {
            v++;
            if (x[t] < 3)
                data[d++] = x[t];
        }
    if (q < 15) {
        const double share = (4.0 - d) / (15 - v);
        uniform(p, 0, 3);
        for (int a = 0; a < 3; a++)
            p[a] *= share;
        p[3] = 1 - share;
    } else if (q == 15)
        p[4] = 1;
    else if (d - 4 + (int)(q - 16) >= 0) /* the last d of 4 */
        p[data[d - 4 + (int)(q - 16)]] = 1;
    else
        uniform(p, 0, 3);
    return true;
}

/* cue:gap=7,alphabet=5 */
static bool cue(double p[SYMBOLS], size_t at, size_t reach)
{
    const size_t q = at % 10;

    if (q == 8)
        p[10] = 1;
    else if (q == 9 && reach >= 9)
        p[x[at - 9]] = 1;
    else
        uniform(p, q == 0 || q == 9 ? 5 : 0, 5);
    return true;
}

/* flipflop:ignore=0.5 */
static bool flipflop(double p[SYMBOLS], size_t at, size_t reach)
{
    static int bit;
    static size_t told; /* where it was last seen */

    if (at == 1)
        told = 0;
    if (at >= 2 && at % 2 == 0 && x[at - 2] != 2) {
        bit = x[at - 1];
        told = at - 1;
    }
    if (at % 2 == 0) {
        p[0] = p[1] = 0.25;
        p[2] = 0.5;
    } else if (x[at - 1] == 1 && told && at - (told - 1) <= reach)
        p[bit] = 1;
    else
        p[3] = p[4] = 0.5;
    return true;
}

/* dyck:kinds=3,depth=4 */
static bool dyck(double p[SYMBOLS], size_t at, size_t reach)
{
    static size_t opened[5];
    static int depth;

    if (at == 1)
        depth = 0;
    if (x[at - 1] < 3)
        opened[depth++] = at - 1;
    else
        depth--;
    const double opens = depth == 0 ? 1 : depth == 4 ? 0 : 0.5;
    uniform(p, 0, 3);
    for (int k = 0; k < 3; k++)
        p[k] *= opens;
    if (depth > 0 && opened[depth - 1] + reach >= at)
        p[3 + x[opened[depth - 1]]] = 1 - opens;
    else
        for (int k = 0; k < 3; k++)
            p[3 + k] = (1 - opens) / 3;
    return true;
}

/* markov of these sizes, from a table of counts that is made anew */
static bool chain(double p[SYMBOLS], size_t at, size_t reach, int m, int A, double c, int len)
{
    const size_t q = at % (size_t)len, begin = at - q,
                 from = at - reach > begin ? at - reach : begin;
    int counts[64][8] = {{0}}, row = 0, all = 0;

    if (q < (size_t)m) {
        uniform(p, 0, A);
        return true;
    }
    for (size_t t = from + (size_t)m; t <= at; t++) {
        row = 0;
        for (int k = m; k > 0; k--)
            row = row * A + x[t - (size_t)k];
        if (t < at)
            counts[row][x[t]]++;
    }
    for (int a = 0; a < A; a++)
        all += counts[row][a];
    for (int a = 0; a < A; a++)
        p[a] = (counts[row][a] + c) / (all + A * c);
    return true;
}
static bool markov(double p[SYMBOLS], size_t at, size_t reach)
{
    return chain(p, at, reach, 1, 4, 0.5, 60);
}
static bool markov_2(double p[SYMBOLS], size_t at, size_t reach)
{
    return chain(p, at, reach, 2, 3, 0.25, 100);
}

/* lookup:len=9,alphabet=4,gram=0 and gram=2: the weight of each place, symbol by symbol */
static bool copied(double p[SYMBOLS], size_t at, size_t reach)
{
    const size_t q = at % 19;

    if (q == 9)
        p[4] = 1;
    else if (q > 9 && reach >= 10)
        p[x[at - 10]] = 1;
    else
        uniform(p, 0, 4);
    return true;
}
static bool looked_up(double p[SYMBOLS], size_t at, size_t reach)
{
    const size_t q = at % 13, begin = at - q;
    double weight[7], sum = 0;

    if (q <= 9) {
        uniform(p, q == 9 ? 4 : 0, q == 9 ? 1 : 4);
        return true;
    }
    for (size_t i = 0; i < 7; i++) {
        weight[i] = 1;
        for (size_t k = 0; k < q - 10; k++) {
            const bool sees = begin + i + k + reach >= at, sees_gram = begin + 10 + k + reach >= at;
            if (sees_gram)
                weight[i] *= !sees ? 0.25 : x[begin + i + k] == x[begin + 10 + k];
        }
        sum += weight[i];
    }
    for (size_t i = 0; i < 7; i++) {
        const size_t next = begin + i + q - 10;
        for (int a = 0; a < 4; a++)
            p[a] += weight[i] / sum * (next + reach < at ? 0.25 : x[next] == a);
    }
    return true;
}

/* reverse:n=4,alphabet=5 and translate:n=4,alphabet=5: the dictionary from what was seen */
static bool reversed(double p[SYMBOLS], size_t at, size_t reach)
{
    const size_t q = at % 9, of = at - q + 8 - q;

    if (q == 4)
        p[5] = 1;
    else if (q > 4 && of + reach >= at)
        p[x[of]] = 1;
    else
        uniform(p, 0, 5);
    return true;
}
static bool translated(double p[SYMBOLS], size_t at, size_t reach)
{
    const size_t q = at % 9;
    int to[5] = {0};

    for (size_t t = 0; t < N; t++)
        if (t % 9 > 4 && t < 9000)
            to[x[t - 5]] = x[t];
    if (q == 4)
        p[5] = 1;
    else if (q > 4 && reach >= 5)
        p[to[x[at - 5]]] = 1;
    else
        uniform(p, 0, 5);
    return true;
}

/* sort:n=4,alphabet=3: all 81 sources that may stand there */
static bool sorted(double p[SYMBOLS], size_t at, size_t reach)
{
    const size_t q = at % 9, begin = at - q;
    double all = 0;

    if (q <= 4) {
        uniform(p, q == 4 ? 3 : 0, q == 4 ? 1 : 3);
        return true;
    }
    for (int source = 0; source < 81; source++) {
        uint8_t y[9] = {0};
        int n = 5;
        bool fits = true;
        for (int i = 0, rest = source; i < 4; i++, rest /= 3)
            y[i] = (uint8_t)(rest % 3);
        for (uint8_t a = 0; a < 3; a++)
            for (int i = 0; i < 4; i++)
                if (y[i] == a)
                    y[n++] = a;
        for (size_t t = 0; t < q; t++)
            fits = fits && (t == 4 || begin + t + reach < at || y[t] == x[begin + t]);
        p[y[q]] += fits;
        all += fits;
    }
    for (int a = 0; a < 3; a++)
        p[a] /= all;
    return true;
}

/* fuzzy:pairs=3,alphabet=3,values=4,most=2,len=36: symbols 3 to 6 are values, 7 is "=", 8 ";". Answers
 * only; what the pairs tell is read from the whole episode, pair by pair. */
static bool fuzzy(double p[SYMBOLS], size_t at, size_t reach)
{
    const size_t begin = at - at % 36;
    size_t start = begin, number = 0;
    bool found = false;
    char key[8] = "";

    for (size_t t = begin; t < at; t++)
        if (x[t] == 8) {
            start = t + 1;
            number++;
        }
    const uint8_t *const sign = memchr(x + start, 7, at - start);
    if (number < 3 || !sign)
        return false;
    const size_t first = (size_t)(sign - x) + 1, n = at - first;
    memcpy(key, x + start, first - start);
    for (size_t t = begin, end = 0; t < start; t = end + 1) {
        for (end = t; x[end] != 8;)
            end++;
        if (end + reach < at || memcmp(x + t, key, first - start) != 0)
            continue;
        memset(p, 0, SYMBOLS * sizeof(*p));
        p[x[t + first - start + n]] = 1;
        found = true;
    }
    if (found)
        return true;
    uniform(p, 3, 4);
    for (int v = 3; v < 7; v++)
        p[v] *= n == 0 ? 1 : n == 1 ? 0.5 : 0;
    p[8] = n == 0 ? 0 : n == 1 ? 0.5 : 1;
    return true;
}

/* noisy:keys=3,values=4,noise=0.4,symbols=2,len=20: symbols 3 to 6 are values */
static bool noisy(double p[SYMBOLS], size_t at, size_t reach)
{
    const size_t q = at % 20, begin = at - q;
    int value[3] = {0};
    bool pair = false;

    for (size_t t = begin; t < at; t++) {
        if (pair && t + reach >= at)
            value[x[t - 1]] = x[t];
        pair = !pair && x[t] < 3;
    }
    if (!pair) {
        p[7] = p[8] = q == 19 ? 0.5 : 0.2;
        for (int k = 0; k < 3; k++)
            p[k] = q == 19 ? 0 : 0.2;
    } else if (value[x[at - 1]])
        p[value[x[at - 1]]] = 1;
    else
        uniform(p, 3, 4);
    return true;
}

/* compression:n=6,alphabet=3,ask=4: the mark is 3, places are 4 to 9 */
static bool compressed(double p[SYMBOLS], size_t at, size_t reach)
{
    const size_t q = at % 15, begin = at - q;
    int told[6];

    memset(told, -1, sizeof(told));
    for (size_t t = begin; t < at; t++)
        if (t + reach >= at && t % 15 < 6)
            told[t % 15] = x[t];
        else if (t + reach >= at && t % 15 > 6 && t % 2 == (begin + 8) % 2)
            told[x[t - 1] - 4] = x[t];
    if (q < 6)
        uniform(p, 0, 3);
    else if (q == 6)
        p[3] = 1;
    else if (q % 2)
        uniform(p, 4, 6);
    else if (told[x[at - 1] - 4] >= 0)
        p[told[x[at - 1] - 4]] = 1;
    else
        uniform(p, 0, 3);
    return true;
}

/* memorisation:alphabet=4,gram=2,values=5: the facts from what was seen; of cut keys all that end so */
static bool memorised(double p[SYMBOLS], size_t at, size_t reach)
{
    static int fact[4][4];

    if (at % 3 < 2) {
        uniform(p, 0, 4);
        return true;
    }
    for (size_t t = 2; t < 9000; t += 3)
        fact[x[t - 2]][x[t - 1]] = x[t];
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++)
            if ((reach < 1 || b == x[at - 1]) && (reach < 2 || a == x[at - 2]))
                p[fact[a][b]] += reach < 1 ? 1.0 / 16 : reach < 2 ? 0.25 : 1;
    return true;
}

/* ---- floors ------------------------------------------------------------------------------- */

static const struct {
    const char *text;
    predict_fn *predict;
    size_t little; /* a reach that some answers need more than */
} cases[] = {
    {"recall:keys=6,values=5,p=0.7", recall, 13},
    {"mqar:pairs=5,len=40,vocab=64", mqar, 22},
    {"selcopy:n=4,len=20,alphabet=3", selcopy, 9},
    {"fuzzy:pairs=3,alphabet=3,values=4,most=2,len=36", fuzzy, 12},
    {"noisy:keys=3,values=4,noise=0.4,symbols=2,len=20", noisy, 5},
    {"compression:n=6,alphabet=3,ask=4", compressed, 6},
    {"memorisation:alphabet=4,gram=2,values=5", memorised, 1},
    {"cue:gap=7,alphabet=5", cue, 8},
    {"flipflop:ignore=0.5", flipflop, 7},
    {"dyck:kinds=3,depth=4", dyck, 3},
    {"markov:order=1,alphabet=4,alpha=0.5,len=60", markov, 12},
    {"markov:order=2,alphabet=3,alpha=0.25,len=100", markov_2, 30},
    {"lookup:len=9,alphabet=4,gram=0", copied, 9},
    {"lookup:len=9,alphabet=4,gram=2", looked_up, 8},
    {"reverse:n=4,alphabet=5", reversed, 3},
    {"translate:n=4,alphabet=5", translated, 3},
    {"sort:n=4,alphabet=3", sorted, 3},
    {"sort:n=4,alphabet=3", sorted, 6},
};

struct sums {
    double loss, floor, answer_loss, answer_floor;
    double off, square; /* of the loss from the entropy that was predicted, and its squares */
    int answers;
};

static struct sums run(const struct synthetic *s, predict_fn *predict, size_t reach)
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
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct synthetic s = parsed(cases[i].text);
        synthetic_fill(&s, SPLIT_TEST, x, N);
        const struct sums all = run(&s, cases[i].predict, N);
        const struct sums some = run(&s, cases[i].predict, cases[i].little);
        cr_assert_gt(all.answers, 1000, "%s", cases[i].text);
        expect_reached(all.loss, all.floor, "all of the past", cases[i].text);
        expect_reached(all.answer_loss, all.answer_floor, "answers", cases[i].text);
        expect_reached(some.loss, some.floor, "some of it", cases[i].text);
        expect_reached(some.answer_loss, some.answer_floor, "answers", cases[i].text);
        /* Draws from what was predicted: off is a sum of differences of mean 0. */
        cr_expect_lt(fabs(all.off), 4 * sqrt(all.square) + 1e-9, "%s: %g nats of %g", cases[i].text,
                     all.off, sqrt(all.square));
        cr_expect_gt(some.answer_floor, all.answer_floor + 0.02 * some.answers,
                     "%s: the past does not matter: %g, %g", cases[i].text, some.answer_floor,
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
        char text[64];
        const int n = groups[g].n;
        snprintf(text, sizeof(text), "group:name=%s,ask=1", groups[g].name);
        learn_group(table, text, n);
        expect_group(table, n, n < 120, groups[g].name);
        if (n == 120) { /* 01243 after 01324 is 01423, the other way round 01342, in their order */
            cr_expect(table[120 * 1 + 2] == 4 && table[120 * 2 + 1] == 3, "%d %d", table[122],
                      table[241]);
        }
        snprintf(text, sizeof(text), "group:name=%s,ask=6", groups[g].name);
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

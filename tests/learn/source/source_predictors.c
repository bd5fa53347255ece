/* SPDX-License-Identifier: MIT
 *
 * Predictors of the generated sources, written from their definitions. */
#include "source_predictors.h"

uint8_t source_text[SOURCE_TEXT];

enum { N = SOURCE_TEXT, SYMBOLS = SOURCE_SYMBOLS };
static const uint8_t *const x = source_text;

static void uniform(double p[SYMBOLS], int first, int n)
{
    for (int i = 0; i < n; i++)
        p[first + i] += 1.0 / n;
}

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

const struct source_case source_cases[] = {
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
    {NULL, NULL, 0},
};

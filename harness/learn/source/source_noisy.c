/* SPDX-License-Identifier: MIT
 *
 * noisy:keys=A,values=B,noise=P,symbols=C,len=N (noisy recall: Poli et al. 2024, "Mechanistic Design
 * and Scaling of Hybrid Architectures"). Episodes of N symbols: with probability P one of noise,
 * uniform over C, otherwise a key, uniform over A, and its value, which is uniform over B when the
 * key first occurs in the episode and the same afterwards. The last place holds no pair, so it is
 * noise.
 *
 * Which symbols are values counts as known. Noise costs ln (C/P), a key ln (A/(1-P)), the last place
 * ln C. The value of a key that has occurred costs nothing if that pair is within reach, as `recall`,
 * other values ln B. Answers are the values of keys that have occurred. */
#include "synthetic.h"

enum { KEYS, VALUES, NOISE, SYMBOLS, LEN };

static int first_value(const struct synthetic *s) { return source_int(s, KEYS); }
static int first_noise(const struct synthetic *s) { return first_value(s) + source_int(s, VALUES); }
static int vocab(const struct synthetic *s) { return first_noise(s) + source_int(s, SYMBOLS); }
static size_t length(const struct synthetic *s) { return (size_t)s->value[LEN]; }
static bool is_value(const struct synthetic *s, uint8_t x)
{
    return x >= first_value(s) && x < first_noise(s);
}

/* Where the value of the key before `at` last stood after `begin`; 0 = nowhere. */
static size_t value_before(const struct synthetic *s, const uint8_t *x, size_t at, size_t begin)
{
    for (size_t t = at - 1; t-- > begin + 1;)
        if (is_value(s, x[t]) && x[t - 1] == x[at - 1])
            return t;
    return 0;
}

static void fill(const struct synthetic *s, uint64_t seed, uint8_t *x, size_t n)
{
    const uint64_t kind = rng_stream("source.noisy.kind"), key = rng_stream("source.noisy.key"),
                   value = rng_stream("source.noisy.value"),
                   noise = rng_stream("source.noisy.noise");
    bool pair = false; /* of a key that is waiting for its value */

    for (size_t t = 0; t < n; t++) {
        const size_t q = t % length(s);
        if (pair) {
            const size_t before = value_before(s, x, t, t - q);
            x[t] = before ? x[before]
                          : (uint8_t)(first_value(s) +
                                      source_draw(seed, value, t, source_int(s, VALUES)));
            pair = false;
        } else if (q + 1 == length(s) || rng_uniform(seed, kind, t) < s->value[NOISE])
            x[t] = (uint8_t)(first_noise(s) + source_draw(seed, noise, t, source_int(s, SYMBOLS)));
        else {
            x[t] = (uint8_t)source_draw(seed, key, t, first_value(s));
            pair = true;
        }
    }
}

static bool answers(const struct synthetic *s, const uint8_t *x, size_t at)
{
    return is_value(s, x[at]) && value_before(s, x, at, at - at % length(s));
}

static double nll(const struct synthetic *s, const uint8_t *x, size_t at, struct source_view view)
{
    const size_t q = at % length(s), begin = at - q;
    const double P = s->value[NOISE];

    if (is_value(s, x[at])) {
        const size_t before = value_before(s, x, at, begin);
        return before && before >= source_seen(at, view.reach, begin) ? 0 : log(s->value[VALUES]);
    }
    if (q + 1 == length(s))
        return log(s->value[SYMBOLS]);
    return x[at] < first_value(s) ? log(s->value[KEYS]) - log1p(-P)
                                  : log(s->value[SYMBOLS]) - log(P);
}

const struct source_kind source_noisy = {
    .name = "noisy",
    .about = "pairs of a key and its value among symbols of noise",
    .keys = {{"keys", 16, 1, 255, false, NULL},
             {"values", 16, 1, 255, false, NULL},
             {"noise", 0.5, 0.000001, 0.999999, true, NULL},
             {"symbols", 16, 1, 255, false, NULL},
             {"len", 128, 4, 1 << 16, false, NULL}},
    SOURCE_HOOKS,
    .answers = answers,
};

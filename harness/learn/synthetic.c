/* SPDX-License-Identifier: MIT
 *
 * The copy source. */
#include "synthetic.h"

#include "variants/base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char PREFIX[] = "copy:";

bool synthetic_named(const char *text) { return strncmp(text, PREFIX, strlen(PREFIX)) == 0; }

/* Parse one "key=value" and move *at after it and its comma. */
static bool read_pair(struct synthetic *s, const char **at)
{
    static const char *const keys[] = {"lag=", "p=", "alphabet="};
    char *end;

    for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
        if (strncmp(*at, keys[k], strlen(keys[k])) != 0)
            continue;
        const double value = strtod(*at + strlen(keys[k]), &end);
        if (end == *at + strlen(keys[k]) || (*end != ',' && *end != '\0'))
            return false;
        if (k == 1)
            s->p = value;
        else if (!(value >= 1 && value <= 1e9) || value != floor(value))
            return false;
        else if (k == 0)
            s->lag = (int)value;
        else
            s->alphabet = (int)value;
        *at = *end == ',' ? end + 1 : end;
        return true;
    }
    return false;
}

enum status synthetic_parse(struct synthetic *s, const char *text, struct err *e)
{
    const char *at = text + strlen(PREFIX);

    *s = (struct synthetic){.lag = 192, .alphabet = 16, .p = 0.9};
    while (*at)
        if (!read_pair(s, &at))
            return fail(e, E_USAGE, "source \"%s\": cannot read \"%s\"  -> write it as %s", text,
                        at, SOURCE_DEFAULT);
    if (s->alphabet < 2 || s->alphabet > 256 || !(s->p >= 0 && s->p < 1))
        return fail(e, E_USAGE, "source \"%s\": alphabet %d, p %g  -> 2..256 symbols, 0 <= p < 1",
                    text, s->alphabet, s->p);
    return OK;
}

void synthetic_fill(const struct synthetic *s, enum split split, uint8_t *symbols, size_t n)
{
    const uint64_t choice = rng_stream("source.choice"), fresh = rng_stream("source.symbol");
    const uint64_t seed = (uint64_t)split;

    for (size_t t = 0; t < n; t++) {
        const bool repeat = t >= (size_t)s->lag && rng_uniform(seed, choice, t) < s->p;
        symbols[t] = repeat ? symbols[t - (size_t)s->lag]
                            : (uint8_t)(rng_u32(seed, fresh, t) % (uint32_t)s->alphabet);
    }
}

size_t synthetic_reach(bool recompute, int N, int M, int L, int i)
{
    const size_t n = (size_t)N, m = (size_t)M, l = (size_t)L;
    const size_t past = recompute || M == 0 ? m : n * m + (n - 1) * (l - 1);

    return past + (size_t)i + 1;
}

double synthetic_nll(const struct synthetic *s, const uint8_t *symbols, size_t at, size_t reach)
{
    const double other = (1 - s->p) / s->alphabet;

    if (at < (size_t)s->lag || reach < (size_t)s->lag)
        return log(s->alphabet);
    return -log(symbols[at] == symbols[at - (size_t)s->lag] ? s->p + other : other);
}

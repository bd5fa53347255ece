/* SPDX-License-Identifier: MIT
 *
 * Pairs of a source and a target. */
#include "pairs.h"
#include "variants/base/loops.h"

static size_t period(const struct pairs *p) { return (size_t)p->source + (size_t)p->target + 1; }

enum status pairs_of(struct pairs *p, const struct corpus *c, struct err *e)
{
    char sources[KEYED_TEXT];
    struct source_pair pair = {0};

    if (c->generated)
        pair = synthetic_pair(&c->synthetic);
    *p = (struct pairs){.source = pair.source, .target = pair.target};
    if (pair.target == 0)
        return fail(e, E_USAGE,
                    "text %.200s has no pairs of a source and a target, which an encoder and a "
                    "decoder read  -> use %s",
                    c->name, synthetic_pairs(sources));
    p->n = c->n / period(p);
    return p->n > 0
               ? OK
               : fail(e, E_USAGE, "text %.200s: %zu symbols are not a pair  -> use %zu or more",
                      c->name, c->n, period(p));
}

void pairs_read(const struct pairs *p, const uint8_t *text, size_t i, int32_t *source,
                int32_t *tokens, int32_t *targets)
{
    const uint8_t *const at = text + i * period(p), *const mark = at + p->source;

    for (int k = 0; k < p->source; k++)
        source[k] = at[k];
    for (int k = 0; k < p->target; k++) {
        tokens[k] = mark[k];
        targets[k] = mark[k + 1];
    }
}

int pairs_right(const float *logits, const int32_t *targets, int n, int V)
{
    int right = 0;

    for (int k = 0; k < n; k++)
        right += largest_at(logits + (ptrdiff_t)k * V, V) == targets[k];
    return right;
}

double pairs_floor(const struct pairs *p, const struct corpus *c, size_t i, const float *nll,
                   struct answers *a)
{
    const struct synthetic *const s = &c->synthetic;
    double sum = 0;

    for (int k = 0; k < p->target; k++) {
        const size_t reach = (size_t)p->source + (size_t)k + 1, at = i * period(p) + reach;
        const double floor = synthetic_nll(s, c->bytes, at, reach, NULL);
        sum += floor;
        if (synthetic_answers(s, c->bytes, at))
            answers_add(a, (double)nll[k], floor, synthetic_nll(s, c->bytes, at, 0, NULL));
    }
    return sum;
}

/* SPDX-License-Identifier: MIT
 *
 * dyck:kinds=k,depth=m. Brackets of k kinds that nest up to m deep: at depth 0 one opens, at depth
 * m the innermost closes, in between either with probability 1/2; what opens is of a uniform kind.
 * An opening costs ln k at depth 0 and ln 2 + ln k above, a closing ln 2, or nothing at depth m,
 * and ln k more if its opening is out of reach: ln k, ln 2 + (ln k)/2 and 0 on average. The depth
 * counts as known. Answers are what closes. */
#include "synthetic.h"

enum { KINDS, DEPTH };
enum { DEEPEST = 255 };

static int vocab(const struct synthetic *s) { return 2 * source_int(s, KINDS); }

static void fill(const struct synthetic *s, uint64_t seed, uint8_t *x, size_t n)
{
    const uint64_t way = rng_stream("source.dyck.way"), which = rng_stream("source.dyck.kind");
    const int k = source_int(s, KINDS), m = source_int(s, DEPTH);
    uint8_t open[DEEPEST];
    int depth = 0;

    for (size_t t = 0; t < n; t++) {
        if (depth == 0 || (depth < m && rng_uniform(seed, way, t) < 0.5)) {
            open[depth++] = (uint8_t)source_draw(seed, which, t, k);
            x[t] = open[depth - 1];
        } else
            x[t] = (uint8_t)(open[--depth] + k);
    }
}

static bool answers(const struct synthetic *s, const uint8_t *x, size_t at)
{
    return x[at] >= source_int(s, KINDS);
}

static int depth_before(const struct synthetic *s, const uint8_t *x, size_t at,
                        struct source_memo *memo)
{
    if (memo->at > at)
        *memo = (struct source_memo){0};
    for (; memo->at < at; memo->at++)
        memo->value += answers(s, x, memo->at) ? -1 : 1;
    return memo->value;
}

/* Is the opening of what closes at `at` within reach? */
static bool sees_opening(const struct synthetic *s, const uint8_t *x, size_t at, size_t reach)
{
    int depth = 1;

    for (size_t back = 1; back <= reach; back++) {
        depth += answers(s, x, at - back) ? 1 : -1;
        if (depth == 0)
            return true;
    }
    return false;
}

static double nll(const struct synthetic *s, const uint8_t *x, size_t at, struct source_view view)
{
    const int depth = depth_before(s, x, at, view.memo);
    const double way = depth == 0 || depth == source_int(s, DEPTH) ? 0 : log(2);
    const bool known = answers(s, x, at) && sees_opening(s, x, at, view.reach);

    return way + (known ? 0 : log(s->value[KINDS]));
}

const struct source_kind source_dyck = {
    .name = "dyck",
    .about = "brackets of several kinds that nest up to `depth` deep",
    .keys = {{"kinds", 4, 1, 128, false, NULL}, {"depth", 8, 1, DEEPEST, false, NULL}},
    SOURCE_HOOKS,
    .answers = answers,
};

/* SPDX-License-Identifier: MIT
 *
 * The sizes of DExTra's stages (Mehta et al. 2020, arXiv:2008.00623, section 3.1).
 *
 * Widths grow linearly from the input's to `width` D over the first half of the stages and shrink
 * again; groups double from stage to stage and halve again. In the paper:
 *
 *   y_0 = x W_0;  y_i = act(glt_i([x, y_(i-1)]));  the last without act (not stated in the paper)
 *
 * The authors' program has a full linear map before and after, groups begin at 2, and every stage
 * has an activation:
 *
 *   x_0 = act(W_in x);  y_i = act(glt_i([x_0, y_(i-1)]));  act(W_out [x_0, y_n])
 *
 * The number of groups always divides what is split. */
#include "dextra.h"

#include <stdio.h>

/* The nth of N values on a straight line from first to last. */
static double on_line(double first, double last, int nth, int N)
{
    return N > 1 ? first + (last - first) * min_int(nth, N - 1) / (N - 1) : first;
}

/* Groups of transform i of n: doubling up to the middle, then halving. */
static int groups_of(const struct config *c, int i, int n, int base)
{
    const int from_end = min_int(i, n - 1 - i);
    int groups = 1;

    for (int k = c->dextra_code ? -1 : 0; k < from_end; k++)
        if (2 * groups <= c->glt_groups && base % (2 * groups) == 0)
            groups *= 2;
    return groups;
}

static int width_of(int i, int n, int base, int widest)
{
    const int half = (n + 1) / 2, from_end = min_int(i, n - 1 - i);

    return half > 1 ? base + (int)((double)(widest - base) * from_end / (half - 1)) : base;
}

static void add(struct stages *s, struct stage stage)
{
    s->at[s->n] = stage;
    s->at[s->n].param = s->n ? s->at[s->n - 1].param + (s->at[s->n - 1].norm ? 4 : 2) : 0;
    s->n++;
}

struct stages dextra_stages(const struct config *c, int nth)
{
    enum { ROUND = 8 }; /* as in the authors' program */
    const bool code = c->dextra_code, norm = c->glt_norm;
    const int n = (int)on_line(c->dextra_depth[0], c->dextra_depth[1], nth, c->N);
    const int widest =
        (int)(on_line((double)c->dextra_width[0], (double)c->dextra_width[1], nth, c->N) * c->D);
    const int last = c->H * c->dh, base = code ? last : c->D;
    struct stages s = {0};

    CHECK(n >= 1 && n <= MAX_DEXTRA_DEPTH);
    if (code)
        add(&s, (struct stage){"in", 1, c->D, 0, base, true, false, norm, true, 0});
    for (int i = 0, before = 0; i < n; i++) {
        const int groups = groups_of(c, i, n, base);
        const int unit = max_int(code ? ROUND : 1,
                                 max_int(groups, groups_of(c, min_int(i + 1, n - 1), n, base)));
        const int width = (width_of(i, n, base, widest) + unit - 1) / unit * unit;
        struct stage t = {.groups = groups,
                          .a = base,
                          .b = before,
                          .out = i == n - 1 ? last : width,
                          .reads_x = !code,
                          .shuffle = c->glt_shuffle && groups > 1,
                          .norm = norm,
                          .act = code || i < n - 1};
        snprintf(t.name, sizeof(t.name), "glt.%d", i);
        add(&s, t);
        before = t.out;
    }
    if (code)
        add(&s, (struct stage){"out", 1, base, last, last, false, false, norm, true, 0});
    return s;
}

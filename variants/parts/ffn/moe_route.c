/* SPDX-License-Identifier: MIT
 *
 * Routing: integers and a few numbers per row, in a fixed order independent of threads, because
 * capacity is first come, first served. */
#include "moe.h"

#include <string.h>

/* ---- work space --------------------------------------------------------------------------- */

size_t moe_most_places(const struct config *c, int rows)
{
    const size_t asked = (size_t)rows * (size_t)moe_of(c)->k;
    const size_t places = (size_t)moe_of(c)->experts * (size_t)moe_of(c)->capacity;

    return moe_of(c)->capacity && places < asked ? places : asked;
}

size_t moe_work_floats(const struct config *c, int rows)
{
    const size_t n = (size_t)rows, E = (size_t)moe_of(c)->experts, D = (size_t)c->D,
                 F = (size_t)c->F;

    return n * E + 4 * n * (size_t)moe_of(c)->k + E + 1 + moe_most_places(c, rows) * (2 * D + F);
}

struct moe_work moe_work_of(const struct config *c, int rows, const float *work)
{
    const size_t choices = (size_t)rows * (size_t)moe_of(c)->k, E = (size_t)moe_of(c)->experts;
    const size_t places = moe_most_places(c, rows);
    float *at = (float *)work;
    struct moe_work w;

    w.p = at, at += (size_t)rows * E;
    w.gate = at, at += choices;
    w.choice = (int32_t *)at, at += choices;
    w.route = (int32_t *)at, at += choices;
    w.place = (int32_t *)at, at += choices;
    w.first = (int32_t *)at, at += E + 1;
    w.in = at, at += places * (size_t)c->D;
    w.hidden = at, at += places * (size_t)c->F;
    w.out = at;
    return w;
}

/* ---- choices ------------------------------------------------------------------------------ */

/* The k experts of one row, best first, and their gates. */
static void choose(const struct config *c, const float *p, int32_t *choice, float *gate)
{
    double sum = 0;

    for (int k = 0; k < moe_of(c)->k; k++) {
        int best = -1;
        for (int e = 0; e < moe_of(c)->experts; e++) {
            bool taken = false;
            for (int before = 0; before < k; before++)
                taken |= choice[before] == e;
            if (!taken && (best < 0 || p[e] > p[best]))
                best = e;
        }
        choice[k] = best;
        sum += (double)p[best];
    }
    for (int k = 0; k < moe_of(c)->k; k++)
        gate[k] = moe_of(c)->k == 1 ? p[choice[k]] : (float)((double)p[choice[k]] / sum);
}

/* Serve first choices of all rows, then second ones. Leaves the experts' row counts in
 * first[1..E]. */
static void admit(const struct config *c, const struct moe_work *w, int rows)
{
    memset(w->first, 0, sizeof(int32_t) * (size_t)(moe_of(c)->experts + 1));
    for (int k = 0; k < moe_of(c)->k; k++)
        for (int t = 0; t < rows; t++) {
            const ptrdiff_t at = (ptrdiff_t)t * moe_of(c)->k + k;
            int32_t *served = &w->first[w->choice[at] + 1];
            const bool full = moe_of(c)->capacity && *served == moe_of(c)->capacity;
            w->route[at] = full ? -1 : w->choice[at];
            *served += !full;
        }
}

/* From row counts to first places; assigns each served choice its place. */
static void assign_places(const struct config *c, const struct moe_work *w, int rows)
{
    const int E = moe_of(c)->experts;

    for (int e = 0; e < E; e++)
        w->first[e + 1] += w->first[e];
    for (ptrdiff_t at = 0; at < (ptrdiff_t)rows * moe_of(c)->k; at++)
        w->place[at] = w->route[at] < 0 ? -1 : w->first[w->route[at]]++;
    memmove(w->first + 1, w->first,
            sizeof(int32_t) * (size_t)E); /* an expert's end is the next one's start */
    w->first[0] = 0;
}

void moe_assign(const struct config *c, const struct moe_work *w, int rows)
{
    for (int t = 0; t < rows; t++)
        choose(c, w->p + (ptrdiff_t)t * moe_of(c)->experts, w->choice + (ptrdiff_t)t * moe_of(c)->k,
               w->gate + (ptrdiff_t)t * moe_of(c)->k);
    admit(c, w, rows);
    assign_places(c, w, rows);
}

double moe_share(const struct config *c, const struct moe_work *w, int rows, int e)
{
    int n = 0;

    for (int t = 0; t < rows; t++)
        n += w->choice[(ptrdiff_t)t * moe_of(c)->k] == e;
    return (double)n / rows;
}

double moe_aux(const struct config *c, int rows, const float *work)
{
    const struct moe_work w = moe_work_of(c, rows, work);
    double aux = 0;

    for (int e = 0; e < moe_of(c)->experts; e++) {
        double mean = 0;
        for (int t = 0; t < rows; t++)
            mean += (double)w.p[(ptrdiff_t)t * moe_of(c)->experts + e] / rows;
        aux += moe_of(c)->experts * moe_share(c, &w, rows, e) * mean;
    }
    return aux;
}

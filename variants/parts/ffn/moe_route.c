/* SPDX-License-Identifier: MIT
 *
 * Routing: integers and a few numbers per row, in a fixed order independent of threads, because
 * capacity is first come, first served. */
#include "moe.h"

/* ---- work space --------------------------------------------------------------------------- */

size_t moe_most_places(const struct config *c, int rows)
{
    const size_t asked = (size_t)rows * (size_t)moe_k(c);
    const size_t places = (size_t)moe_of(c)->experts * (size_t)moe_of(c)->capacity;

    return moe_of(c)->capacity && places < asked ? places : asked;
}

static size_t probabilities(const struct config *c, int rows)
{
    return moe_by_token(c) ? 0 : (size_t)rows * (size_t)moe_of(c)->experts;
}

size_t moe_work_floats(const struct config *c, int rows)
{
    const size_t n = (size_t)rows, E = (size_t)moe_of(c)->experts, D = (size_t)c->D,
                 F = (size_t)c->F;

    const size_t Fs = (size_t)moe_of(c)->shared, units = 1 + moe_pre_units(c);
    const size_t shared = Fs ? n * (units * Fs + D + 1) : 0;

    return probabilities(c, rows) + 4 * n * (size_t)moe_k(c) + E + 1 +
           moe_most_places(c, rows) * (2 * D + units * F) + shared;
}

struct moe_work moe_work_of(const struct config *c, int rows, const float *work)
{
    const size_t choices = (size_t)rows * (size_t)moe_k(c), E = (size_t)moe_of(c)->experts;
    const size_t places = moe_most_places(c, rows), units = moe_pre_units(c);
    const size_t shared = (size_t)rows * (size_t)moe_of(c)->shared;
    float *at = (float *)work;
    struct moe_work w;

    w.p = at, at += probabilities(c, rows);
    w.gate = at, at += choices;
    w.choice = (int32_t *)at, at += choices;
    w.route = (int32_t *)at, at += choices;
    w.place = (int32_t *)at, at += choices;
    w.first = (int32_t *)at, at += E + 1;
    w.in = at, at += places * (size_t)c->D;
    w.hidden = at, at += places * (size_t)c->F;
    w.out = at, at += places * (size_t)c->D;
    w.pre = units ? at : NULL, at += places * units * (size_t)c->F;
    w.shared_hidden = at, at += shared;
    w.shared_pre = units ? at : NULL, at += units * shared;
    w.shared_out = at, at += (size_t)rows * (size_t)c->D;
    w.shared_gate = at;
    return w;
}

/* ---- choices ------------------------------------------------------------------------------ */

/* Within which groups a row may choose: those whose best experts are the best of all. */
static void allow(const struct moe *m, const float *p, bool *allowed)
{
    const int n = m->experts / m->route_groups;
    float best[MOE_EXPERTS];

    for (int group = 0; group < m->route_groups; group++) {
        best[group] = p[group * n];
        for (int e = group * n; e < (group + 1) * n; e++)
            best[group] = p[e] > best[group] ? p[e] : best[group];
    }
    for (int i = 0; i < m->route_within; i++) {
        int next = -1;
        for (int group = 0; group < m->route_groups; group++)
            if (!allowed[group] && (next < 0 || best[group] > best[next]))
                next = group;
        allowed[next] = true;
    }
}

/* The k experts of one row, best first, and their gates. */
static void choose(const struct config *c, const float *p, int32_t *choice, float *gate)
{
    const struct moe *const m = moe_of(c);
    const int n = m->experts / m->route_groups;
    bool allowed[MOE_EXPERTS] = {false};
    double sum = 0;

    allow(m, p, allowed);
    for (int k = 0; k < moe_of(c)->k; k++) {
        int best = -1;
        for (int e = 0; e < moe_of(c)->experts; e++) {
            bool taken = !allowed[e / n];
            for (int before = 0; before < k; before++)
                taken |= choice[before] == e;
            if (!taken && (best < 0 || p[e] > p[best]))
                best = e;
        }
        choice[k] = best;
        sum += (double)p[best];
    }
    for (int k = 0; k < m->k; k++)
        gate[k] = (float)((double)m->scale * (double)p[choice[k]] / (moe_norms(c) ? sum : 1));
}

/* The best expert of each group, and its probability in the group. */
static void choose_in_groups(const struct config *c, const float *p, int32_t *choice, float *gate)
{
    const int n = moe_of(c)->experts / moe_of(c)->groups;

    for (int k = 0; k < moe_of(c)->groups; k++) {
        int best = k * n;
        for (int e = best + 1; e < (k + 1) * n; e++)
            best = p[e] > p[best] ? e : best;
        choice[k] = best;
        gate[k] = p[best];
    }
}

/* Serve first choices of all rows, then second ones. Leaves the experts' row counts in
 * first[1..E]. */
static void admit(const struct config *c, const struct moe_work *w, int rows)
{
    memset(w->first, 0, sizeof(int32_t) * (size_t)(moe_of(c)->experts + 1));
    for (int k = 0; k < moe_k(c); k++)
        for (int t = 0; t < rows; t++) {
            const ptrdiff_t at = (ptrdiff_t)t * moe_k(c) + k;
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
    for (ptrdiff_t at = 0; at < (ptrdiff_t)rows * moe_k(c); at++)
        w->place[at] = w->route[at] < 0 ? -1 : w->first[w->route[at]]++;
    memmove(w->first + 1, w->first,
            sizeof(int32_t) * (size_t)E); /* an expert's end is the next one's start */
    w->first[0] = 0;
}

void moe_assign(const struct config *c, const struct moe_work *w, int rows)
{
    for (int t = 0; t < rows && !moe_by_token(c); t++)
        (moe_in_groups(c) ? choose_in_groups : choose)(c, w->p + (ptrdiff_t)t * moe_of(c)->experts,
                                                       w->choice + (ptrdiff_t)t * moe_k(c),
                                                       w->gate + (ptrdiff_t)t * moe_k(c));
    admit(c, w, rows);
    assign_places(c, w, rows);
}

double moe_share(const struct config *c, const struct moe_work *w, int rows, int e)
{
    int n = 0;

    for (int t = 0; t < rows; t++)
        n += w->choice[(ptrdiff_t)t * moe_k(c)] == e;
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

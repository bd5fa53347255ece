/* SPDX-License-Identifier: MIT
 *
 * Comparing numbers with a reference, and the sample of rows that are. */
#include "agree.h"

#include "variants/base/rng.h"

bool within_bound(double max_rel, double nmse, struct bound bound)
{
    return max_rel <= bound.rel && nmse <= bound.nmse;
}

struct agreement agree(const float *got, const float *want, size_t n, struct bound bound)
{
    struct agreement a = {0};
    double largest = bound.floor, off = 0, all = 0;

    for (size_t i = 0; i < n; i++) {
        const double w = (double)want[i], d = fabs((double)got[i] - w);
        if (d > a.max_abs || (isnan(d) && !isnan(a.max_abs))) {
            a.max_abs = d;
            a.at = i;
        }
        largest = fmax(largest, fabs(w));
        off += d * d;
        all += w * w;
    }
    all = fmax(all, (double)n * bound.floor * bound.floor);
    a.max_rel = a.max_abs > 0 || isnan(a.max_abs) ? a.max_abs / largest : 0;
    a.nmse = off > 0 || isnan(off) ? off / all : 0;
    a.limit = fmax(bound.rel * largest, bound.abs);
    a.within = a.max_abs <= a.limit && a.nmse <= bound.nmse; /* false for NaN */
    return a;
}

int checked_row(const struct checked_rows *r, int b, int k)
{
    const int64_t from = (int64_t)k * r->L / r->each, to = (int64_t)(k + 1) * r->L / r->each;
    const uint64_t at = (uint64_t)b * (uint64_t)r->each + (uint64_t)k;

    if (k == 0)
        return 0;
    if (k == r->each - 1)
        return r->L - 1;
    return (int)(from + (int64_t)(rng_u32(r->seed, rng_stream("checked rows"), at) *
                                      (uint64_t)(to - from) >>
                                  32));
}

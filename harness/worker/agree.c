/* SPDX-License-Identifier: MIT
 *
 * Comparing numbers with a reference. */
#include "agree.h"

#include <math.h>

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

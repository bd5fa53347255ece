/* SPDX-License-Identifier: MIT
 *
 * The sample of rows. */
#include "checked_rows.h"

#include "variants/base/rng.h"

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

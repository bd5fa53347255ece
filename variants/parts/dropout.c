/* SPDX-License-Identifier: MIT
 *
 * Masks from counter-based random numbers. */
#include "dropout.h"

#include "variants/base/base.h"
#include "variants/base/loops.h"
#include "variants/base/rng.h"

void dropout(const struct dropout *d, enum drop_place place, float *x, size_t n, int threads)
{
    enum { WORDS = 4 };
    if (d->p == 0 || n == 0)
        return;
    CHECK(d->p > 0 && d->p < 1 && d->layer >= 0 && d->layer < 1 << 12);
    const uint64_t which = d->step << 16 | (uint64_t)d->layer << 4 | (uint64_t)place;
    const uint64_t stream = rng_stream("dropout") ^ which;
    const uint32_t drop_below = (uint32_t)((double)d->p * 0x1p32);
    const float keep = 1 / (1 - d->p);
    const size_t from = place == DROP_POSITIONS ? 0 : (size_t)d->part * n, end = from + n;
    const ptrdiff_t last = (ptrdiff_t)((end - 1) / WORDS);

#pragma omp parallel for num_threads(team_for(threads, n))
    for (ptrdiff_t b = (ptrdiff_t)(from / WORDS); b <= last; b++) {
        uint32_t bits[WORDS];
        rng_u32_block(bits, d->seed, stream, (uint64_t)b);
        for (size_t i = 0, e = (size_t)b * WORDS; i < WORDS; i++, e++)
            if (e >= from && e < end)
                x[e - from] *= bits[i] < drop_below ? 0 : keep;
    }
}

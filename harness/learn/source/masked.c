/* SPDX-License-Identifier: MIT
 *
 * Which tokens are hidden. */
#include "masked.h"

#include "variants/base/rng.h"

#include <math.h>
#include <string.h>

int masked_count(double share, int n)
{
    const int count = (int)lrint(share * n);

    return count < 1 ? 1 : count > n ? n : count;
}

/* Each place with the chance that is left over places that are left: every choice of `count` places
 * is equally likely (selection sampling, Knuth, volume 2, 3.4.2). */
void masked_hide(int count, uint64_t seed, uint64_t window, int32_t mask, int32_t *tokens, int n,
                 int32_t *at, int32_t *was)
{
    int found = 0;

    for (int i = 0; i < n && found < count; i++) {
        const uint64_t draw = (uint64_t)rng_u32(seed, window, (uint64_t)i) * (uint64_t)(n - i);
        if ((int)(draw >> 32) >= count - found)
            continue;
        at[found] = i;
        was[found++] = tokens[i];
        tokens[i] = mask;
    }
}

const char *masked_unit(const char *unit)
{
    static const char *const names[][2] = {{"byte", "masked byte"},
                                           {"symbol", "masked symbol"},
                                           {"token", "masked token"},
                                           {"word", "masked word"}};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i][0], unit) == 0)
            return names[i][1];
    return unit;
}

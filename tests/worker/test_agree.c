/* SPDX-License-Identifier: MIT
 *
 * The rule of agreement with known numbers. */
#include "harness/worker/agree.h"
#include "tests/support/compared.h"

static const struct bound bound = {.rel = 1e-3, .nmse = 1e-6};

Test(agree, largest_error_against_largest_magnitude)
{
    const float want[] = {1, -8, 0}, got[] = {1, -8, 0.004f};
    const struct agreement a = agree(got, want, 3, bound);

    cr_expect(a.at == 2 && fabs(a.max_abs - 0.004) < 1e-8);
    NUMBERS({a.max_rel, 0.004 / 8, 1e-9}, {a.nmse, 0.004 * 0.004 / 65, 1e-12},
            {a.limit, 8e-3, 1e-12});
    cr_expect(a.within);
    cr_expect(!agree(got, want, 3, (struct bound){.rel = 4e-4, .nmse = 1e-6}).within);
    cr_expect(!agree(got, want, 3, (struct bound){.rel = 1e-3, .nmse = 1e-8}).within);
}

Test(agree, zeros_and_numbers_that_are_none)
{
    const float zero[2] = {0}, small[] = {0, 1e-9f}, one[] = {1, 1}, broken[] = {NAN, 1};

    cr_expect(agree(zero, zero, 2, bound).within && agree(zero, zero, 2, bound).max_rel == 0);
    cr_expect(!agree(small, zero, 2, bound).within, "no error of nothing is small");
    cr_expect(agree(small, zero, 2, (struct bound){.rel = 1e-3, .nmse = 1, .floor = 1}).within);
    cr_expect(agree(small, zero, 2, (struct bound){.abs = 1e-8, .nmse = INFINITY}).within);
    const struct agreement a = agree(broken, one, 2, bound);
    cr_expect(!a.within && isnan(a.max_abs) && isnan(a.nmse) && a.at == 0);
    cr_expect(!within_bound(NAN, 0, bound) && !within_bound(0, NAN, bound));
}

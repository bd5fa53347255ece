/* SPDX-License-Identifier: MIT
 *
 * Numbers for the screen: the roundings at the edges of units. */
#include "harness/util/units.h"

#include <criterion/criterion.h>
#include <math.h>

#define SHOWS(call, text) cr_expect_str_eq((call).s, text, #call " is %s", (call).s)

Test(human, times_have_three_digits)
{
    SHOWS(human_ns(21.4e6), "21.4 ms");
    SHOWS(human_ns(3.02e6), "3.02 ms");
    SHOWS(human_ns(999.4), "999 ns");
    SHOWS(human_ns(999.6), "1.00 us");
    SHOWS(human_ns(999.96e3), "1.00 ms");
    SHOWS(human_ns(0.5), "0.500 ns");
    SHOWS(human_ns(0), "0 ns");
    SHOWS(human_ns(123e9), "123 s");
    SHOWS(human_ns(NAN), "-");
    SHOWS(human_ns(INFINITY), "-");
}

Test(human, bytes_have_one_decimal)
{
    SHOWS(human_bytes(0), "0 B");
    SHOWS(human_bytes(1023), "1023 B");
    SHOWS(human_bytes(1024), "1.0 KiB");
    SHOWS(human_bytes(1048575), "1.0 MiB");
    SHOWS(human_bytes(4.1 * 1048576), "4.1 MiB");
    SHOWS(human_bytes(34.4 * 1073741824), "34.4 GiB");
    SHOWS(human_bytes(-2048), "-2.0 KiB");
    SHOWS(human_bytes(NAN), "-");
}

Test(human, counts_are_grouped)
{
    SHOWS(human_count(0), "0");
    SHOWS(human_count(-0.2), "0");
    SHOWS(human_count(999), "999");
    SHOWS(human_count(1000), "1 000");
    SHOWS(human_count(-1234567), "-1 234 567");
    SHOWS(human_count(1e300), "-");
    SHOWS(human_rate(5983.2), "5 980");
    SHOWS(human_rate(42449), "42 400");
    SHOWS(human_rate(999.7), "1 000");
    SHOWS(human_rate(22), "22.0");
    SHOWS(human_rate(0.123), "0.123");
    SHOWS(human_rate(0.000123), "0.000123");
    SHOWS(human_rate(NAN), "-");
}

Test(human, shares_and_ratios)
{
    SHOWS(human_pct(0.62), "0.6 %");
    SHOWS(human_pct(9.94), "9.9 %");
    SHOWS(human_pct(9.96), "10 %");
    SHOWS(human_pct(14.2), "14 %");
    SHOWS(human_ratio(1.0699), "1.07x");
    SHOWS(human_ratio(11.98), "12.0x");
    SHOWS(human_ratio(0), "0x");
    SHOWS(human_ratio(NAN), "-");
}

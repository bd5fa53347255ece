/* SPDX-License-Identifier: MIT
 *
 * Numbers for the screen: the roundings at the edges of units. */
#include "harness/util/units.h"

#include <criterion/criterion.h>
#include <math.h>

#define SHOWS(call, text) cr_expect_str_eq((call).s, text, #call " is %s", (call).s)

Test(unit_text, times_have_three_digits)
{
    SHOWS(units_ns(21.4e6), "21.4 ms");
    SHOWS(units_ns(3.02e6), "3.02 ms");
    SHOWS(units_ns(999.4), "999 ns");
    SHOWS(units_ns(999.6), "1.00 us");
    SHOWS(units_ns(999.96e3), "1.00 ms");
    SHOWS(units_ns(0.5), "0.500 ns");
    SHOWS(units_ns(0), "0 ns");
    SHOWS(units_ns(123e9), "123 s");
    SHOWS(units_ns(NAN), "-");
    SHOWS(units_ns(INFINITY), "-");
    SHOWS(units_joules(35.2e-6), "35.2 uJ");
    SHOWS(units_joules(4.1e-9), "4.10 nJ");
    SHOWS(units_joules(1200), "1200 J");
    SHOWS(units_joules(NAN), "-");
}

Test(unit_text, bytes_have_one_decimal)
{
    SHOWS(units_bytes(0), "0 B");
    SHOWS(units_bytes(1023), "1023 B");
    SHOWS(units_bytes(1024), "1.0 KiB");
    SHOWS(units_bytes(1048575), "1.0 MiB");
    SHOWS(units_bytes(4.1 * 1048576), "4.1 MiB");
    SHOWS(units_bytes(34.4 * 1073741824), "34.4 GiB");
    SHOWS(units_bytes(-2048), "-2.0 KiB");
    SHOWS(units_bytes(NAN), "-");
}

Test(unit_text, counts_are_grouped)
{
    SHOWS(units_count(0), "0");
    SHOWS(units_count(-0.2), "0");
    SHOWS(units_count(999), "999");
    SHOWS(units_count(1000), "1 000");
    SHOWS(units_count(-1234567), "-1 234 567");
    SHOWS(units_count(1e300), "-");
    SHOWS(units_rate(5983.2), "5 980");
    SHOWS(units_rate(42449), "42 400");
    SHOWS(units_rate(999.7), "1 000");
    SHOWS(units_rate(22), "22.0");
    SHOWS(units_rate(0.123), "0.123");
    SHOWS(units_rate(0.000123), "0.000123");
    SHOWS(units_rate(NAN), "-");
}

Test(unit_text, shares_and_ratios)
{
    SHOWS(units_pct(0.62), "0.6 %");
    SHOWS(units_pct(9.94), "9.9 %");
    SHOWS(units_pct(9.96), "10 %");
    SHOWS(units_pct(14.2), "14 %");
    SHOWS(units_ratio(1.0699), "1.07x");
    SHOWS(units_ratio(11.98), "12.0x");
    SHOWS(units_ratio(0), "0x");
    SHOWS(units_ratio(NAN), "-");
}

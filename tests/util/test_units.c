/* SPDX-License-Identifier: MIT
 *
 * Numbers for the screen: the roundings at the edges of units. */
#include "harness/util/units.h"
#include "tests/support/compared.h"

Test(unit_text, times_have_three_digits)
{
    TEXTS_IN(struct unit_text, {units_ns(21.4e6), "21.4 ms"}, {units_ns(3.02e6), "3.02 ms"},
             {units_ns(999.4), "999 ns"}, {units_ns(999.6), "1.00 us"},
             {units_ns(999.96e3), "1.00 ms"}, {units_ns(0.5), "0.500 ns"}, {units_ns(0), "0 ns"},
             {units_ns(123e9), "123 s"}, {units_ns(NAN), "-"}, {units_ns(INFINITY), "-"},
             {units_joules(35.2e-6), "35.2 uJ"}, {units_joules(4.1e-9), "4.10 nJ"},
             {units_joules(1200), "1200 J"}, {units_joules(NAN), "-"});
}

Test(unit_text, bytes_have_one_decimal)
{
    TEXTS_IN(struct unit_text, {units_bytes(0), "0 B"}, {units_bytes(1023), "1023 B"},
             {units_bytes(1024), "1.0 KiB"}, {units_bytes(1048575), "1.0 MiB"},
             {units_bytes(4.1 * 1048576), "4.1 MiB"}, {units_bytes(34.4 * 1073741824), "34.4 GiB"},
             {units_bytes(-2048), "-2.0 KiB"}, {units_bytes(NAN), "-"});
}

Test(unit_text, counts_are_grouped)
{
    TEXTS_IN(struct unit_text, {units_count(0), "0"}, {units_count(-0.2), "0"},
             {units_count(999), "999"}, {units_count(1000), "1 000"},
             {units_count(-1234567), "-1 234 567"}, {units_count(1e300), "-"},
             {units_rate(5983.2), "5 980"}, {units_rate(42449), "42 400"},
             {units_rate(999.7), "1 000"}, {units_rate(22), "22.0"}, {units_rate(0.123), "0.123"},
             {units_rate(0.000123), "0.000123"}, {units_rate(NAN), "-"});
}

Test(unit_text, shares_and_ratios)
{
    TEXTS_IN(struct unit_text, {units_pct(0.62), "0.6 %"}, {units_pct(9.94), "9.9 %"},
             {units_pct(9.96), "10 %"}, {units_pct(14.2), "14 %"}, {units_ratio(1.0699), "1.07x"},
             {units_ratio(11.98), "12.0x"}, {units_ratio(0), "0x"}, {units_ratio(NAN), "-"});
}

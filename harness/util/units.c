/* SPDX-License-Identifier: MIT
 *
 * One function a unit; all of them round to three digits first, so that 999.6 becomes 1.00 k. */
#include "units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const struct unit_text nothing = {"-"};

/* x rounded to three digits, so that 999.6 becomes 1000 before its unit is chosen. */
static double three_digits(double x)
{
    char text[32];
    snprintf(text, sizeof(text), "%.2e", x);
    return strtod(text, NULL);
}

/* A number made by three_digits, with trailing zeros, followed by a unit. */
static struct unit_text put(double x, const char *unit)
{
    struct unit_text h;
    const double a = fabs(x);

    if (a == 0)
        snprintf(h.s, sizeof(h.s), "0%s", unit);
    else if (a < 0.1)
        snprintf(h.s, sizeof(h.s), "%.3g%s", x, unit);
    else
        snprintf(h.s, sizeof(h.s), "%.*f%s", a >= 100 ? 0 : a >= 10 ? 1 : a >= 1 ? 2 : 3, x, unit);
    return h;
}

/* In the largest of four units, each 1000 times the one before, that x reaches. */
static struct unit_text prefixed(double smallest, const char *const unit[4])
{
    double x = three_digits(smallest);
    int u = 0;

    if (!isfinite(smallest))
        return nothing;
    for (; u < 3 && fabs(x) >= 1000; u++)
        x /= 1000;
    return put(x, unit[u]);
}

struct unit_text units_ns(double ns)
{
    static const char *const unit[] = {" ns", " us", " ms", " s"};

    return prefixed(ns, unit);
}

struct unit_text units_joules(double j)
{
    static const char *const unit[] = {" nJ", " uJ", " mJ", " J"};

    return prefixed(j * 1e9, unit);
}

struct unit_text units_bytes(double bytes)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    struct unit_text h = nothing;
    double x = bytes;
    int u = 0;

    if (!isfinite(bytes))
        return h;
    /* From 1023.95 on, one decimal would print 1024.0 of the smaller unit. */
    for (; u < 5 && fabs(x) >= (u ? 1023.95 : 1024); u++)
        x /= 1024;
    snprintf(h.s, sizeof(h.s), "%.*f %s", u > 0, x, unit[u]);
    return h;
}

struct unit_text units_count(double n)
{
    struct unit_text h = nothing;
    char digits[24];

    if (!isfinite(n) || fabs(n) >= 1e18)
        return h;
    const int length = snprintf(digits, sizeof(digits), "%.0f", fabs(n));
    char *out = h.s;
    if (n < 0 && !(length == 1 && digits[0] == '0'))
        *out++ = '-';
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *out++ = ' ';
        *out++ = digits[i];
    }
    *out = '\0';
    return h;
}

struct unit_text units_exact(long long n)
{
    static const struct {
        const char *suffix;
        int factor;
    } units[] = {{"Mi", 1 << 20}, {"M", 1000000}, {"Ki", 1 << 10}, {"k", 1000}, {"", 1}};
    struct unit_text h;
    size_t i = 0;

    while (n % units[i].factor != 0)
        i++;
    snprintf(h.s, sizeof(h.s), "%lld%s", n / units[i].factor, units[i].suffix);
    return h;
}

struct unit_text units_rate(double x)
{
    const double rounded = three_digits(x);

    if (fabs(rounded) >= 1000 || !isfinite(x))
        return units_count(rounded);
    return put(rounded, "");
}

struct unit_text units_pct(double pct)
{
    struct unit_text h = nothing;

    if (isfinite(pct))
        snprintf(h.s, sizeof(h.s), "%.*f %%", fabs(pct) < 9.95, pct);
    return h;
}

struct unit_text units_ratio(double x) { return isfinite(x) ? put(three_digits(x), "x") : nothing; }

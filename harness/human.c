/* SPDX-License-Identifier: MIT
 *
 * Numbers for the screen. */
#include "human.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const struct human nothing = {"-"};

/* x rounded to three digits, so that 999.6 becomes 1000 before a unit is chosen for it. */
static double three_digits(double x)
{
    char text[32];
    snprintf(text, sizeof(text), "%.2e", x);
    return strtod(text, NULL);
}

/* Decimals that make three digits of a number that is already rounded. */
static int decimals(double x)
{
    const double a = fabs(x);
    return a >= 100 ? 0 : a >= 10 ? 1 : a >= 1 ? 2 : 3;
}

struct human human_ns(double ns)
{
    static const char *const unit[] = {"ns", "us", "ms", "s"};
    struct human h = nothing;
    double x = three_digits(ns);
    int u = 0;

    if (!isfinite(ns))
        return h;
    for (; u < 3 && fabs(x) >= 1000; u++)
        x /= 1000;
    snprintf(h.s, sizeof(h.s), "%.*f %s", decimals(x), x, unit[u]);
    return h;
}

struct human human_bytes(double bytes)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    struct human h = nothing;
    double x = bytes;
    int u = 0;

    if (!isfinite(bytes))
        return h;
    /* From 1023.95 on one decimal would show 1024.0 of the smaller unit. */
    for (; u < 5 && fabs(x) >= (u ? 1023.95 : 1024); u++)
        x /= 1024;
    snprintf(h.s, sizeof(h.s), "%.*f %s", u > 0, x, unit[u]);
    return h;
}

struct human human_count(double n)
{
    struct human h = nothing;
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

struct human human_rate(double x)
{
    struct human h = nothing;
    const double rounded = three_digits(x);

    if (fabs(rounded) >= 1000 || !isfinite(x))
        return human_count(rounded);
    snprintf(h.s, sizeof(h.s), "%.*f", decimals(rounded), rounded);
    return h;
}

struct human human_pct(double pct)
{
    struct human h = nothing;

    if (!isfinite(pct))
        return h;
    const int digits = fabs(pct) < 9.95;
    snprintf(h.s, sizeof(h.s), "%.*f %%", digits, pct);
    return h;
}

struct human human_ratio(double x)
{
    struct human h = nothing;
    const double rounded = three_digits(x);

    if (!isfinite(x))
        return h;
    snprintf(h.s, sizeof(h.s), "%.*fx", decimals(rounded), rounded);
    return h;
}

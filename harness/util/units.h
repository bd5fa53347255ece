/* SPDX-License-Identifier: MIT
 *
 * Numbers for the screen, with prefixes and three digits; files hold base units. A number that is
 * missing (NAN, infinite) prints as "-". */
#pragma once

/* Returned by value, so that a call can stand in a printf: units_ns(x).s */
struct unit_text {
    char s[32];
};

struct unit_text units_ns(double ns);       /* "21.4 ms" */
struct unit_text units_joules(double j);    /* "35.2 uJ" */
struct unit_text units_bytes(double bytes); /* "4.1 MiB", "34.4 GiB", "512 B", one decimal */
struct unit_text units_count(double n);     /* rounded to a whole number: "42 400" */
struct unit_text units_exact(long long n);  /* no digit is lost: "256Ki", "3M", "1001" */
struct unit_text units_rate(double x);      /* three digits: "42 400", "5 980", "0.123" */
struct unit_text units_pct(double pct);     /* "0.6 %", "14 %" */
struct unit_text units_ratio(double x);     /* "1.07x", "12.0x" */

/* The ending of a word that stands behind a number: "" after 1, else "s". */
static inline const char *plural(long n) { return n == 1 ? "" : "s"; }

/* SPDX-License-Identifier: MIT
 *
 * Numbers for the screen. Files have base units; people have prefixes and three digits. A number
 * that is not there (NAN, infinite) is "-". */
#ifndef UNITS_H
#define UNITS_H

/* Returned by value, so that calls can stand in a printf: human_ns(x).s */
struct human {
    char s[32];
};

struct human human_ns(double ns);       /* "21.4 ms" */
struct human human_bytes(double bytes); /* "4.1 MiB", "34.4 GiB", "512 B", one decimal */
struct human human_count(double n);     /* rounded to a whole number: "42 400" */
struct human human_rate(double x);      /* three digits: "42 400", "5 980", "0.123" */
struct human human_pct(double pct);     /* "0.6 %", "14 %" */
struct human human_ratio(double x);     /* "1.07x", "12.0x" */

#endif

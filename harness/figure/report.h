/* SPDX-License-Identifier: MIT
 *
 * One self-contained page about runs. The form is plots/report.html; this fills in the figures, the
 * tables as CSV in links, and names. The page's script draws the tables from the links. */
#ifndef REPORT_H
#define REPORT_H

#include "figure.h"

struct report {
    const struct plot_data *run;
    int runs;
    const struct names *figures; /* none: all */
    const volatile int *stop;    /* raised to stop before the next figure: E_INTERRUPTED */
    int warnings; /* figures that are missing because gnuplot is; the page names them */
};

/* Write the page. Figures need gnuplot; without it the page says so and counts warnings. */
enum status report_write(FILE *f, struct report *r, struct err *e);

#endif

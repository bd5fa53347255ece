/* SPDX-License-Identifier: MIT
 *
 * One self-contained page about runs. The form is plots/report.html; this fills in the figures, the
 * tables as CSV in links, and names. The page's script draws the tables from the links. */
#pragma once

#include "figure.h"

struct report {
    const struct plot_data *run;
    int runs;
    const struct names *figures; /* none: all */
    int warnings;   /* figures that are missing because they could not be drawn; the page names them
                     */
    struct err why; /* of the first */
};

/* Write the page. Figures need a gnuplot that works; without it the page says so and counts
 * warnings. E_INTERRUPTED. */
enum status report_write(FILE *f, struct report *r, struct err *e);

/* SPDX-License-Identifier: MIT
 *
 * The energy that the machine's CPU packages use, from the kernel's powercap counters. Virtual machines
 * have none, and most systems let only root read them. */
#pragma once

#include "variants/base/base.h"

enum { MOST_PACKAGES = 16 };

struct energy {
    int packages; /* 0: unknown */
    struct energy_package {
        char path[512];      /* of its counter */
        double range, start; /* uJ: where the counter begins again; at energy_start */
    } package[MOST_PACKAGES];
};

/* The packages whose counters can be read, all or none; files below `root`, "" = the system's. */
void energy_find(struct energy *e, const char *root);

void energy_start(struct energy *e);

/* Joules of all packages since energy_start, what is idle included; NAN if unknown. The kernel renews
 * the counters every millisecond. */
double energy_joules(const struct energy *e);

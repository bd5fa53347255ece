/* SPDX-License-Identifier: MIT
 *
 * The losses of the windows of a text, and the interval of their mean. */
#pragma once

#include "variants/base/base.h"

struct window_sums {
    double *sum; /* [count] nats */
    int *n;      /* [count] tokens */
    size_t count;
};

enum status window_sums_add(struct window_sums *s, double sum, double n, struct err *e);

/* The 95 % interval of `mean`, nats a token of all `tokens`, from the spread of the windows' means. The
 * normal approximation of many windows; neighbouring ones are correlated, so the true interval is a
 * little wider. NAN below two windows. */
void window_sums_interval(const struct window_sums *s, double mean, double tokens, double *low,
                          double *high);

void window_sums_free(struct window_sums *s);
